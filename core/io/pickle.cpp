#include "tessera/core/io/pickle.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <unordered_map>

#include "tessera/core/error.h"
#include "tessera/core/io/file.h"

namespace tessera {

using Kind = PickleValue::Kind;

// The stack machine. One loop over the opcodes, no recursion; every value is owned by the Pickle, so cycles and deep
// nesting cost nothing when it goes. Amplification is bounded: an opcode makes at most one value.
class PickleMachine {
 public:
  PickleMachine(Pickle& into, std::string_view bytes, const std::string& origin, const PickleOptions& options)
      : into_(into), bytes_(bytes), origin_(origin), options_(options) {}

  void run() {
    for (;;) {
      opcode_at_ = at_;
      const uint8_t opcode = uint8_t(take(1)[0]);
      if (opcode == '.') break;
      step(opcode);
    }
    into_.root_ = pop();
    check<IoError>(stack_.empty() && marks_.empty(),
                   "{}: {} values are left under the result of the pickle that ends at offset {}", origin_, stack_.size(),
                   at_);
    into_.end_ = at_;
  }

 private:
  [[noreturn]] void broken(const char* what) const {
    fail<IoError>("{}: the pickle opcode at offset {} {}", origin_, opcode_at_, what);
  }

  std::string_view take(uint64_t count) {
    check<IoError>(count <= bytes_.size() - at_,
                   "{}: the pickle ends at offset {} but {} more bytes are needed at offset {}", origin_, bytes_.size(),
                   count, at_);
    const std::string_view taken = bytes_.substr(at_, size_t(count));
    at_ += size_t(count);
    return taken;
  }

  template <class T>
  T number() {
    static_assert(std::endian::native == std::endian::little);
    T value;
    std::memcpy(&value, take(sizeof(T)).data(), sizeof(T));
    return value;
  }

  // Text up to a line end, as GLOBAL has it.
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) broken("has a name without an end");
    const std::string_view text = take(end - at_);
    take(1);
    return text;
  }

  PickleValue* make(Kind kind) {
    check<IoError>(int64_t(into_.values_.size()) < options_.max_values, "{}: the pickle has more than {} values", origin_,
                   options_.max_values);
    PickleValue& value = into_.values_.emplace_back();
    value.kind = kind;
    return &value;
  }

  // Values without identity are made once, so that a file of them costs no more than its stack.
  PickleValue* make_shared(PickleValue*& shared, Kind kind) {
    if (shared == nullptr) shared = make(kind);
    return shared;
  }

  void push(PickleValue* value) { stack_.push_back(value); }
  void push_integer(int64_t number) {
    PickleValue* value = make(Kind::integer);
    value->integer = number;
    push(value);
  }
  void push_text(Kind kind, std::string_view text) {
    PickleValue* value = make(kind);
    value->text = text;
    push(value);
  }
  void push_long(std::string_view digits) {
    if (digits.size() > 8) return push_text(Kind::big_integer, digits);
    uint64_t bits = 0;
    for (size_t i = 0; i < digits.size(); ++i) bits |= uint64_t(uint8_t(digits[i])) << (8 * i);
    if (!digits.empty() && digits.size() < 8 && (uint8_t(digits.back()) & 0x80)) bits |= ~uint64_t{0} << (8 * digits.size());
    push_integer(int64_t(bits));
  }

  size_t floor() const { return marks_.empty() ? 0 : marks_.back(); }
  PickleValue* top() {
    if (stack_.size() <= floor()) broken("needs a value but there is none");
    return stack_.back();
  }
  PickleValue* pop() {
    PickleValue* value = top();
    stack_.pop_back();
    return value;
  }
  std::vector<const PickleValue*> pop_to_mark() {
    if (marks_.empty()) broken("needs a mark but there is none");
    std::vector<const PickleValue*> items(stack_.begin() + std::ptrdiff_t(marks_.back()), stack_.end());
    stack_.resize(marks_.back());
    marks_.pop_back();
    return items;
  }

  void push_tuple(size_t count) {
    if (stack_.size() - floor() < count) broken("makes a tuple of more values than there are");
    PickleValue* tuple = make(Kind::tuple);
    tuple->items.assign(stack_.end() - std::ptrdiff_t(count), stack_.end());
    stack_.resize(stack_.size() - count);
    push(tuple);
  }

  void append(const std::vector<const PickleValue*>& items) {
    PickleValue* list = top();
    if (list->kind != Kind::list) broken("adds to something that is no list");
    list->items.insert(list->items.end(), items.begin(), items.end());
  }

  void set_items(const std::vector<const PickleValue*>& items) {
    if (items.size() % 2 != 0) broken("has a key without a value");
    PickleValue* dict = top();
    if (dict->kind != Kind::dict && dict->kind != Kind::object) broken("sets entries of something that is no dict");
    dict->items.insert(dict->items.end(), items.begin(), items.end());
  }

  void push_global(std::string_view module, std::string_view attribute) {
    std::string full(module);
    full.append(" ").append(attribute);
    const auto allowed = std::find(options_.globals.begin(), options_.globals.end(), full);
    check<IoError>(allowed != options_.globals.end(),
                   "{}: the pickle refers to '{}' at offset {}, which is not among the names that are read", origin_,
                   printable(full), opcode_at_);
    push_text(Kind::global, *allowed);
  }

  void push_call() {
    const PickleValue* args = pop();
    const PickleValue* callable = pop();
    if (callable->kind != Kind::global || args->kind != Kind::tuple)
      broken("calls something that is no global, or with no tuple");
    PickleValue* object = make(Kind::object);
    object->global = callable;
    object->args = args;
    push(object);
  }

  void remember(uint64_t index) { memo_[index] = top(); }
  void recall(uint64_t index) {
    const auto found = memo_.find(index);
    if (found == memo_.end()) broken("refers to a value that was not remembered");
    push(found->second);
  }

  void step(uint8_t opcode) {
    switch (opcode) {
      case 0x80: {  // PROTO
        const int version = number<uint8_t>();
        check<IoError>(version >= 2 && version <= 5, "{}: pickle protocol {} is not read, expected 2 to 5", origin_,
                       version);
        return;
      }
      case 0x95: (void)number<uint64_t>(); return;  // FRAME: a hint for buffered readers
      case '(':                                     // MARK
        check<IoError>(int64_t(marks_.size()) < options_.max_open_marks, "{}: the pickle nests more than {} containers",
                       origin_, options_.max_open_marks);
        marks_.push_back(stack_.size());
        return;
      case '0':  // POP
        if (!marks_.empty() && marks_.back() == stack_.size())
          marks_.pop_back();
        else
          pop();
        return;
      case '1': pop_to_mark(); return;  // POP_MARK
      case '2': push(top()); return;    // DUP
      case 'N': push(make_shared(none_, Kind::none)); return;
      case 0x88:  // NEWTRUE
        make_shared(true_, Kind::boolean)->boolean = true;
        push(true_);
        return;
      case 0x89: push(make_shared(false_, Kind::boolean)); return;  // NEWFALSE
      case 'J': push_integer(number<int32_t>()); return;            // BININT
      case 'K': push_integer(number<uint8_t>()); return;            // BININT1
      case 'M': push_integer(number<uint16_t>()); return;           // BININT2
      case 0x8a: push_long(take(number<uint8_t>())); return;        // LONG1
      case 'G': {                                                   // BINFLOAT, big-endian
        uint64_t bits = 0;
        for (const char c : take(8)) bits = bits << 8 | uint8_t(c);
        PickleValue* value = make(Kind::real);
        value->real = std::bit_cast<double>(bits);
        push(value);
        return;
      }
      case 'T': {  // BINSTRING: a signed length
        const int32_t length = number<int32_t>();
        if (length < 0) broken("has a string of negative length");
        push_text(Kind::bytes, take(uint64_t(length)));
        return;
      }
      case 'U': push_text(Kind::bytes, take(number<uint8_t>())); return;    // SHORT_BINSTRING
      case 'B': push_text(Kind::bytes, take(number<uint32_t>())); return;   // BINBYTES
      case 'C': push_text(Kind::bytes, take(number<uint8_t>())); return;    // SHORT_BINBYTES
      case 0x8e: push_text(Kind::bytes, take(number<uint64_t>())); return;  // BINBYTES8
      case 0x96: push_text(Kind::bytes, take(number<uint64_t>())); return;  // BYTEARRAY8
      case 'X': push_text(Kind::text, take(number<uint32_t>())); return;    // BINUNICODE
      case 0x8c: push_text(Kind::text, take(number<uint8_t>())); return;    // SHORT_BINUNICODE
      case 0x8d: push_text(Kind::text, take(number<uint64_t>())); return;   // BINUNICODE8
      case ')': push(make(Kind::tuple)); return;                            // EMPTY_TUPLE
      case 0x85: push_tuple(1); return;                                     // TUPLE1
      case 0x86: push_tuple(2); return;                                     // TUPLE2
      case 0x87: push_tuple(3); return;                                     // TUPLE3
      case 't': {                                                           // TUPLE
        std::vector<const PickleValue*> items = pop_to_mark();
        PickleValue* tuple = make(Kind::tuple);
        tuple->items = std::move(items);
        push(tuple);
        return;
      }
      case ']': push(make(Kind::list)); return;  // EMPTY_LIST
      case 'a': append({pop()}); return;         // APPEND
      case 'e': append(pop_to_mark()); return;   // APPENDS
      case 'l': {                                // LIST
        std::vector<const PickleValue*> items = pop_to_mark();
        PickleValue* list = make(Kind::list);
        list->items = std::move(items);
        push(list);
        return;
      }
      case '}': push(make(Kind::dict)); return;  // EMPTY_DICT
      case 's': {                                // SETITEM
        const PickleValue* value = pop();
        const PickleValue* key = pop();
        set_items({key, value});
        return;
      }
      case 'u': set_items(pop_to_mark()); return;  // SETITEMS
      case 'd': {                                  // DICT
        std::vector<const PickleValue*> items = pop_to_mark();
        push(make(Kind::dict));
        set_items(items);
        return;
      }
      case 'c': {  // GLOBAL
        const std::string_view module = line();
        push_global(module, line());
        return;
      }
      case 0x93: {  // STACK_GLOBAL
        const PickleValue* attribute = pop();
        const PickleValue* module = pop();
        if (attribute->kind != Kind::text || module->kind != Kind::text)
          broken("names a global by something that is no text");
        push_global(module->text, attribute->text);
        return;
      }
      case 'R': push_call(); return;   // REDUCE
      case 0x81: push_call(); return;  // NEWOBJ
      case 'b': {                      // BUILD
        const PickleValue* state = pop();
        PickleValue* object = top();
        if (object->kind != Kind::object) broken("sets the state of something that is no object");
        if (object->state != nullptr) broken("sets the state of an object that has one");
        object->state = state;
        return;
      }
      case 'Q': {  // BINPERSID
        const PickleValue* id = pop();
        PickleValue* value = make(Kind::persistent);
        value->args = id;
        push(value);
        return;
      }
      case 'q': remember(number<uint8_t>()); return;   // BINPUT
      case 'r': remember(number<uint32_t>()); return;  // LONG_BINPUT
      case 0x94: remember(memo_.size()); return;       // MEMOIZE
      case 'h': recall(number<uint8_t>()); return;     // BINGET
      case 'j': recall(number<uint32_t>()); return;    // LONG_BINGET
      default: {
        const char digits[] = "0123456789abcdef";
        fail<IoError>("{}: pickle opcode 0x{}{} at offset {} is not read", origin_, std::string(1, digits[opcode >> 4]),
                      std::string(1, digits[opcode & 15]), opcode_at_);
      }
    }
  }

  Pickle& into_;
  std::string_view bytes_;
  const std::string& origin_;
  const PickleOptions& options_;
  size_t at_ = 0, opcode_at_ = 0;
  std::vector<PickleValue*> stack_;
  std::vector<size_t> marks_;  // stack sizes at open marks
  std::unordered_map<uint64_t, PickleValue*> memo_;
  PickleValue* none_ = nullptr;
  PickleValue* true_ = nullptr;
  PickleValue* false_ = nullptr;
};

Pickle::Pickle(std::string_view bytes, const std::string& origin, const PickleOptions& options) {
  PickleMachine(*this, bytes, origin, options).run();
}

const char* name(PickleValue::Kind kind) {
  switch (kind) {
    case Kind::none: return "none";
    case Kind::boolean: return "bool";
    case Kind::integer:
    case Kind::big_integer: return "int";
    case Kind::real: return "float";
    case Kind::bytes: return "bytes";
    case Kind::text: return "str";
    case Kind::tuple: return "tuple";
    case Kind::list: return "list";
    case Kind::dict: return "dict";
    case Kind::global: return "global";
    case Kind::object: return "object";
    case Kind::persistent: return "persistent reference";
  }
  return "?";
}

const PickleValue* find(const PickleValue& dict, std::string_view key) {
  if (dict.kind != Kind::dict && dict.kind != Kind::object) return nullptr;
  // The last entry of a key counts, as in Python.
  for (size_t i = dict.items.size(); i >= 2; i -= 2) {
    const PickleValue& k = *dict.items[i - 2];
    if ((k.kind == Kind::text || k.kind == Kind::bytes) && k.text == key) return dict.items[i - 1];
  }
  return nullptr;
}

bool is_call(const PickleValue& value, std::string_view global) {
  return value.kind == Kind::object && value.global->text == global;
}

}  // namespace tessera
