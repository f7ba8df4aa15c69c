// A run that is stopped at any moment, by Ctrl-C or by SIGKILL, and resumed, ends with the bits of one that was not.

#include <gtest/gtest.h>

#include <random>

#include "tessera/core/error.h"
#include "tessera/core/io/checkpoint.h"
#include "tessera/tests/apps/process.h"
#include "tessera/tests/core/io/temporary.h"

namespace tessera::test {
namespace {

constexpr const char* kProgram = "tessera-train-node";

using Arguments = std::vector<std::string>;

Arguments operator+(Arguments a, const Arguments& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// Everything that must be equal: digests of weights, accuracies, epochs, the saved weights themselves.
nlohmann::json outcome(const std::string& json, const std::string& weights) {
  nlohmann::json result = json_of(json)["result"];
  result.erase("epoch_seconds");
  result["file"] = std::hash<std::string>{}(read_file(weights));
  return result;
}

/// Runs `options` undisturbed, then again with `kills` kills at random moments of the time that took.
void kill_and_compare(const Arguments& options, int kills, unsigned seed) {
  const TemporaryFolder folder;
  const auto begin = std::chrono::steady_clock::now();
  const Ended whole = run_program(Arguments{kProgram} + options +
                                  Arguments{"--checkpoint", folder / "whole", "--json", folder / "whole.json"});
  ASSERT_EQ(whole.code, 0) << whole.errors;
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();

  const Arguments resumed =
      Arguments{kProgram} + options + Arguments{"--checkpoint", folder / "cut", "--resume", "--json", folder / "cut.json"};
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> moment(0.0, 2 * seconds / kills);
  int killed = 0;
  for (int i = 0; i < kills; ++i) {
    Process process(resumed);
    ::usleep(useconds_t(1e6 * moment(random)));
    process.kill(SIGKILL);
    killed += process.wait() == 128 + SIGKILL;
    if (!file_exists(folder / "cut/checkpoint.safetensors")) continue;
    EXPECT_NO_THROW((void)load_checkpoint(folder / "cut/checkpoint.safetensors"));
  }
  EXPECT_GT(killed, kills / 2) << "the run has to be long enough to be killed";
  const Ended last = run_program(resumed);
  ASSERT_EQ(last.code, 0) << last.errors;
  EXPECT_EQ(outcome(folder / "cut.json", folder / "cut/model.safetensors"),
            outcome(folder / "whole.json", folder / "whole/model.safetensors"));
  std::vector<std::string> left;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "cut"))
    left.push_back(entry.path().filename().string());
  std::sort(left.begin(), left.end());
  EXPECT_EQ(left, (std::vector<std::string>{"checkpoint.safetensors", "model.safetensors"})) << "no stray temporary file";
}

// H54: a checkpoint after nearly every epoch, so that kills fall into the writing.
TEST(resume, killed_while_writing) {
  const int kills = std::getenv("TESSERA_SOAK") == nullptr ? 30 : 200;
  kill_and_compare({"--epochs", to_text(kills * 20), "--hidden", "64", "--checkpoint-every", "2"}, kills, 5);
}

TEST(resume, killed_at_twenty_random_moments) {
  kill_and_compare({"--epochs", "60000", "--checkpoint-every", "500"}, 20, 1);
}

TEST(resume, killed_across_runs_with_early_stopping) {
  kill_and_compare({"--runs", "24", "--epochs", "3000", "--split", "random:40%/20%", "--patience", "1000", "--hidden", "24",
                    "--checkpoint-every", "100"},
                   12, 2);
}

// A plateau has a state of its own; the others follow from the epoch.
TEST(resume, killed_with_a_schedule) {
  kill_and_compare({"--epochs", "20000", "--split", "random:40%/20%", "--schedule", "plateau", "--lr-patience", "200",
                    "--lr-factor", "0.5", "--warmup", "50", "--checkpoint-every", "200"},
                   10, 3);
  kill_and_compare({"--epochs", "20000", "--schedule", "cosine", "--lr-least", "1e-4", "--checkpoint-every", "200"}, 5, 4);
}

TEST(resume, a_cosine_schedule_keeps_its_end) {
  const TemporaryFolder folder;
  const Arguments options = {kProgram, "--schedule", "cosine", "--checkpoint", folder / "c"};
  ASSERT_EQ(run_program(options + Arguments{"--epochs", "20"}).code, 0);
  const Ended longer = run_program(options + Arguments{"--epochs", "30", "--resume"});
  EXPECT_EQ(longer.code, 2);
  EXPECT_NE(longer.errors.find("was made with other options: --epochs 30 (was 20)"), std::string::npos) << longer.errors;
  const Ended other =
      run_program({kProgram, "--schedule", "step", "--epochs", "20", "--checkpoint", folder / "c", "--resume"});
  EXPECT_EQ(other.code, 2);
  EXPECT_NE(other.errors.find("--lr-every 6 (was not set)"), std::string::npos) << other.errors;
}

TEST(resume, interrupted_by_ctrl_c) {
  const TemporaryFolder folder;
  const Arguments options = {kProgram, "--epochs", "30000", "--checkpoint"};
  ASSERT_EQ(run_program(options + Arguments{folder / "whole", "--json", folder / "whole.json"}).code, 0);
  Process process(options + Arguments{folder / "cut"});
  process.wait_for_output();
  ::usleep(50000);
  process.kill(SIGINT);
  EXPECT_EQ(process.wait(), 130);
  EXPECT_NE(process.errors.find("--resume continues from there"), std::string::npos) << process.errors;
  const Checkpoint state = load_checkpoint(folder / "cut/checkpoint.safetensors");
  EXPECT_LT(state.integer("epoch"), 30000);
  const Ended last = run_program(options + Arguments{folder / "cut", "--resume", "--json", folder / "cut.json"});
  ASSERT_EQ(last.code, 0) << last.errors;
  EXPECT_NE(last.output.find("continues run 0 after epoch " + state.text("epoch")), std::string::npos) << last.output;
  EXPECT_EQ(outcome(folder / "cut.json", folder / "cut/model.safetensors"),
            outcome(folder / "whole.json", folder / "whole/model.safetensors"));
}

TEST(resume, a_finished_run_goes_on_for_longer) {
  const TemporaryFolder folder;
  const Arguments options = {kProgram, "--checkpoint"};
  ASSERT_EQ(run_program(options + Arguments{folder / "a", "--epochs", "40"}).code, 0);
  ASSERT_EQ(run_program(options +
                        Arguments{folder / "a", "--resume", "--epochs", "70", "--runs", "2", "--json", folder / "a.json"})
                .code,
            0);
  ASSERT_EQ(
      run_program(options + Arguments{folder / "b", "--epochs", "70", "--runs", "2", "--json", folder / "b.json"}).code, 0);
  EXPECT_EQ(outcome(folder / "a.json", folder / "a/model.safetensors"),
            outcome(folder / "b.json", folder / "b/model.safetensors"));
}

TEST(resume, refuses_what_it_cannot_continue) {
  const TemporaryFolder folder;
  const std::string path = folder / "c/checkpoint.safetensors";
  ASSERT_EQ(run_program({kProgram, "--epochs", "20", "--checkpoint", folder / "c"}).code, 0);
  const std::string good = read_file(path);
  const auto refused = [&](const Arguments& more, int code, const std::string& line) {
    const Ended ended = run_program(Arguments{kProgram, "--checkpoint", folder / "c"} + more);
    EXPECT_EQ(ended.code, code);
    EXPECT_EQ(ended.errors, std::string(kProgram) + ": " + line + "\n");
  };
  refused({"--epochs", "20"}, 2, path + " is there already: --resume continues it, another folder starts anew (see --help)");
  refused({"--epochs", "20", "--resume", "--hidden", "8", "--seed", "3"}, 2,
          path +
              ": was made with other options: --hidden 8 (was 16), --seed 3 (was 0); give the same, or another --checkpoint "
              "folder (see --help)");
  EXPECT_EQ(read_file(path), good) << "a refusal changes nothing";
  std::string bad = good;
  bad[bad.size() - 5] ^= 1;
  put(path, bad);
  const Ended damaged = run_program({kProgram, "--epochs", "20", "--checkpoint", folder / "c", "--resume"});
  EXPECT_EQ(damaged.code, 1);
  EXPECT_NE(damaged.errors.find(path + ": damaged, the content has the digest "), std::string::npos) << damaged.errors;
  put(path, good.substr(0, 100));
  EXPECT_EQ(run_program({kProgram, "--epochs", "20", "--checkpoint", folder / "c", "--resume"}).code, 1);
}

}  // namespace
}  // namespace tessera::test
