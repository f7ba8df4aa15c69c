#include "tessera/core/io/checkpoint.h"

#include <bit>
#include <charconv>
#include <cstdio>

#include "tessera/core/io/safetensors.h"
#include "tessera/core/io/sha256.h"
#include "tessera/core/printable.h"

namespace tessera {
namespace {

constexpr const char* kSemantics = "tessera.semantics";
constexpr const char* kDigest = "tessera.digest";

// Lengths stand before texts, so that no two checkpoints give the same bytes.
std::string digest_of(const Checkpoint& checkpoint) {
  Sha256 hash;
  const auto add = [&](const std::string& text) {
    const uint64_t size = text.size();
    hash.update(&size, sizeof size);
    hash.update(text.data(), text.size());
  };
  for (const auto& [name, value] : checkpoint.values) {
    if (name == kDigest) continue;
    add(name);
    add(value);
  }
  for (const auto& [name, tensor] : checkpoint.tensors) {
    add(name);
    add(to_text(tensor.dtype()) + to_text(tensor.shape()));
    hash.update(tensor.raw(), size_t(tensor.numel()) * size_of(tensor.dtype()));
  }
  return hash.hex();
}

template <class T>
T parse(const std::string& name, const std::string& text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  check(error == std::errc{} && end == text.data() + text.size(), "checkpoint: {} is '{}' but needs to be a number", name,
        printable(text));
  return value;
}

}  // namespace

void Checkpoint::put(const std::string& part, const StateDict& state) {
  for (const auto& [name, tensor] : state) tensors[part + "." + name] = tensor.detach();
}

StateDict Checkpoint::part(const std::string& name) const {
  StateDict out;
  const std::string prefix = name + ".";
  for (auto it = tensors.lower_bound(prefix); it != tensors.end() && it->first.starts_with(prefix); ++it)
    out.emplace(it->first.substr(prefix.size()), it->second);
  return out;
}

void Checkpoint::put_integer(const std::string& name, int64_t value) { values[name] = std::to_string(value); }
void Checkpoint::put_unsigned(const std::string& name, uint64_t value) { values[name] = std::to_string(value); }

void Checkpoint::put_number(const std::string& name, double value) {
  char bits[24];
  std::snprintf(bits, sizeof bits, "%016llx", (unsigned long long)std::bit_cast<uint64_t>(value));
  values[name] = to_text(value) + " = " + bits;
}

const std::string& Checkpoint::text(const std::string& name) const {
  const auto found = values.find(name);
  check(found != values.end(), "checkpoint: {} is missing", name);
  return found->second;
}

int64_t Checkpoint::integer(const std::string& name) const { return parse<int64_t>(name, text(name)); }
uint64_t Checkpoint::unsigned_integer(const std::string& name) const { return parse<uint64_t>(name, text(name)); }

double Checkpoint::number(const std::string& name) const {
  const std::string& value = text(name);
  const size_t at = value.rfind(" = ");
  check(at != std::string::npos, "checkpoint: {} is '{}' but needs to be a number and its bits", name, printable(value));
  return std::bit_cast<double>(parse<uint64_t>(name, value.substr(at + 3), 16));
}

void Checkpoint::put_generator(const std::string& name, const Generator& generator) {
  put_unsigned(name + ".seed", generator.seed());
  put_unsigned(name + ".streams", generator.streams_used());
}

Generator Checkpoint::generator(const std::string& name) const {
  Generator out(0);
  out.restore(unsigned_integer(name + ".seed"), unsigned_integer(name + ".streams"));
  return out;
}

void save_checkpoint(const std::string& path, const Checkpoint& checkpoint) {
  Checkpoint whole = checkpoint;
  whole.put_integer(kSemantics, kCheckpointSemantics);
  whole.values[kDigest] = digest_of(whole);
  save_safetensors(path, whole.tensors, whole.values);
}

Checkpoint load_checkpoint(const std::string& path) {
  SafeTensors file = load_safetensors(path);
  Checkpoint out{std::move(file.tensors), std::move(file.metadata)};
  check<IoError>(out.has(kSemantics) && out.has(kDigest),
                 "{}: not a checkpoint of tessera, its __metadata__ has no {} and {}", path, kSemantics, kDigest);
  const std::string version = std::to_string(kCheckpointSemantics);
  check<IoError>(out.text(kSemantics) == version, "{}: written with checkpoint semantics {}, this program reads {}", path,
                 printable(out.text(kSemantics)), version);
  const std::string digest = digest_of(out);
  check<IoError>(out.text(kDigest) == digest, "{}: damaged, the content has the digest {} but needs {}", path, digest,
                 printable(out.text(kDigest)));
  out.values.erase(kSemantics);
  out.values.erase(kDigest);
  return out;
}

}  // namespace tessera
