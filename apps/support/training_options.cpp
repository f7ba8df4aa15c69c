#include "tessera/apps/support/training_options.h"

#include <CLI/CLI.hpp>

#include "tessera/apps/support/program.h"

namespace tessera::apps {

void add_data_folder_options(CLI::App& app, std::string& data, bool& offline) {
  app.add_option("--data", data,
                 "folder that holds the data set, or the file or folder itself; a known set that is not there is downloaded "
                 "to it [this folder, then $TESSERA_DATA or ~/.cache/tessera]")
      ->type_name("DIR")
      ->group("Data");
  app.add_flag("--offline", offline, "never download")->group("Data");
}

void add_rate_options(CLI::App& app, TrainingOptions& o) {
  app.add_option("--epochs", o.epochs, "most epochs of a run")
      ->check(in_range(1, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--lr", o.lr, "learning rate")->check(in_range(0, 1e308))->type_name("RATE")->group("Training");
  app.add_option(
         "--schedule", o.schedule,
         "learning rate over the epochs: none, step, cosine (to --lr-least at the last epoch), plateau (cut when what "
         "--stop-on says gets no better), warmup")
      ->check(one_of({"none", "step", "cosine", "plateau", "warmup"}))
      ->capture_default_str()
      ->type_name("NAME")
      ->group("Training");
  app.add_option("--warmup", o.warmup,
                 "epochs in which the rate rises from a tenth, before any schedule (10 for warmup, else 0)")
      ->check(in_range(0, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--lr-every", o.lr_every, "step: epochs between cuts (a third of --epochs)")
      ->check(in_range(1, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--lr-factor", o.lr_factor, "step, plateau: what a cut multiplies the rate by (0.1)")
      ->check(in_range(0, 1))
      ->type_name("F")
      ->group("Training");
  app.add_option("--lr-patience", o.lr_patience, "plateau: epochs without a better value before a cut (10)")
      ->check(in_range(0, 100000000))
      ->type_name("N")
      ->group("Training");
  app.add_option("--lr-least", o.lr_least, "cosine, plateau: the rate never falls below (0)")
      ->check(in_range(0, 1e308))
      ->type_name("RATE")
      ->group("Training");
  app.add_option("--weight-decay", o.weight_decay, "L2 penalty")
      ->check(in_range(0, 1e308))
      ->type_name("L2")
      ->group("Training");
}

void add_run_options(CLI::App& app, TrainingOptions& o) {
  app.add_option("--runs", o.runs, "repetitions, with seeds seed, seed + 1, ...")
      ->check(in_range(1, 100000))
      ->capture_default_str()
      ->type_name("N")
      ->group("Training");
  app.add_option("--seed", o.seed, "seed of the first run")
      ->check(in_range(0, 9007199254640991))  // what JSON keeps exactly, with --runs added
      ->capture_default_str()
      ->type_name("N")
      ->group("Training");
}

void add_output_options(CLI::App& app, TrainingOptions& o) {
  app.add_option("--json", o.json, "file for the full result and how it was made")->type_name("FILE")->group("Output");
  app.add_option("--report", o.report, "file for an HTML page: curves, confusion matrix, classes, runs")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--save", o.save, "file for the weights (safetensors), for tessera-predict and PyTorch")
      ->type_name("FILE")
      ->group("Output");
  app.add_option("--log-dir", o.log_dir, "folder for TensorBoard event files")->type_name("DIR")->group("Output");
  app.add_option("--checkpoint", o.checkpoint, "folder for the whole state, written every 5 seconds and at the end")
      ->type_name("DIR")
      ->group("Output");
  app.add_option("--checkpoint-every", o.checkpoint_every, "write it every so many epochs instead")
      ->check(in_range(1, 100000000))
      ->type_name("N")
      ->group("Output");
  app.add_flag("--resume", o.resume, "continue from the state in --checkpoint, from the start when there is none")
      ->group("Output");
}

void add_machine_options(CLI::App& app, TrainingOptions& o) {
  app.add_option("--threads", o.threads, "threads (default: all CPUs)")
      ->check(in_range(1, 4096))
      ->type_name("N")
      ->group("Machine");
  app.add_option("--device", o.device, "device: cpu")
      ->check(one_of({"cpu"}))
      ->capture_default_str()
      ->type_name("NAME")
      ->group("Machine");
}

}  // namespace tessera::apps
