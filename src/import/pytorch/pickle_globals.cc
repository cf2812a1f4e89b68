// SPDX-License-Identifier: Apache-2.0
#include "import/pytorch/pickle_globals.h"

#include <cstring>
#include <limits>

#include "base/checked.h"

namespace cyb {
namespace {

enum class Action : uint8_t {
  name_only,  // may be named as an argument, and not called
  dict,
  set,
  size,
  opaque,
  tensor,
  tensor_v2,
  tensor_v3,
  parameter,
  from_type,
  storage_type,
  untyped_storage,
  element_type,
  encode,
  bytes,
  numpy_type,
  numpy_scalar,
  numpy_array,
  numpy_buffer,
};

struct Allowed {
  std::string_view name;
  Action action;
  SafetensorType type = SafetensorType::F32;
};
using enum SafetensorType;
constexpr Allowed kAllowed[] = {
    {"collections OrderedDict", Action::dict},
    {"collections defaultdict", Action::dict},
    {"collections Counter", Action::dict},
    {"builtins dict", Action::dict},
    {"__builtin__ dict", Action::dict},
    {"builtins set", Action::set},
    {"__builtin__ set", Action::set},
    {"builtins frozenset", Action::set},
    {"__builtin__ frozenset", Action::set},
    {"builtins bytearray", Action::bytes},
    {"__builtin__ bytearray", Action::bytes},
    {"builtins int", Action::name_only},
    {"__builtin__ int", Action::name_only},
    {"builtins float", Action::name_only},
    {"__builtin__ float", Action::name_only},
    {"builtins list", Action::name_only},
    {"__builtin__ list", Action::name_only},
    {"_codecs encode", Action::encode},
    {"torch Size", Action::size},
    {"torch device", Action::opaque},
    {"torch Tensor", Action::name_only},
    {"torch._tensor Tensor", Action::name_only},
    {"torch.nn.parameter Parameter", Action::name_only},
    {"torch._utils _rebuild_tensor", Action::tensor},
    {"torch._utils _rebuild_tensor_v2", Action::tensor_v2},
    {"torch._utils _rebuild_tensor_v3", Action::tensor_v3},
    {"torch._utils _rebuild_parameter", Action::parameter},
    {"torch._utils _rebuild_parameter_with_state", Action::parameter},
    {"torch._tensor _rebuild_from_type_v2", Action::from_type},
    {"torch FloatStorage", Action::storage_type, F32},
    {"torch HalfStorage", Action::storage_type, F16},
    {"torch BFloat16Storage", Action::storage_type, BF16},
    {"torch DoubleStorage", Action::storage_type, F64},
    {"torch LongStorage", Action::storage_type, I64},
    {"torch IntStorage", Action::storage_type, I32},
    {"torch ShortStorage", Action::storage_type, I16},
    {"torch CharStorage", Action::storage_type, I8},
    {"torch ByteStorage", Action::storage_type, U8},
    {"torch BoolStorage", Action::storage_type, BOOL},
    {"torch.storage UntypedStorage", Action::untyped_storage, U8},
    {"torch UntypedStorage", Action::untyped_storage, U8},
    {"torch float32", Action::element_type, F32},
    {"torch float16", Action::element_type, F16},
    {"torch bfloat16", Action::element_type, BF16},
    {"torch float64", Action::element_type, F64},
    {"torch float8_e4m3fn", Action::element_type, F8_E4M3},
    {"torch float8_e5m2", Action::element_type, F8_E5M2},
    {"torch int64", Action::element_type, I64},
    {"torch int32", Action::element_type, I32},
    {"torch int16", Action::element_type, I16},
    {"torch int8", Action::element_type, I8},
    {"torch uint8", Action::element_type, U8},
    {"torch uint16", Action::element_type, U16},
    {"torch uint32", Action::element_type, U32},
    {"torch uint64", Action::element_type, U64},
    {"torch bool", Action::element_type, BOOL},
    {"numpy dtype", Action::numpy_type},
    {"numpy ndarray", Action::name_only},
    {"numpy.core.multiarray scalar", Action::numpy_scalar},
    {"numpy._core.multiarray scalar", Action::numpy_scalar},
    {"numpy.core.multiarray _reconstruct", Action::numpy_array},
    {"numpy._core.multiarray _reconstruct", Action::numpy_array},
    {"numpy.core.numeric _frombuffer", Action::numpy_buffer},
    {"numpy._core.numeric _frombuffer", Action::numpy_buffer},
};

constexpr std::pair<std::string_view, SafetensorType> kNumpyTypes[] = {
    {"f4", F32}, {"f2", F16}, {"f8", F64}, {"i8", I64}, {"i4", I32}, {"i2", I16},
    {"i1", I8},  {"u1", U8},  {"u2", U16}, {"u4", U32}, {"u8", U64}, {"b1", BOOL}};

// "module name" → "module.name"
std::string dotted(std::string_view text) {
  std::string out(text);
  if (const size_t space = out.rfind(' '); space != std::string::npos) out[space] = '.';
  return out;
}

class Arguments {
 public:
  Arguments(const PickleValues& values, const PickleNode& callable, const PickleNode& args)
      : values_(values), name_(dotted(callable.text)), args_(args) {
    if (args.kind != PickleKind::tuple) throw wrong(0, args);
  }
  size_t count() const { return args_.items.size(); }
  const PickleNode& at(size_t i) const {
    if (i >= count()) throw pickle_error(fmt::format("{} with {} arguments", name_, count()));
    return values_[args_.items[i]];
  }
  const PickleNode& of_kind(size_t i, PickleKind kind) const {
    if (at(i).kind != kind) throw wrong(i, at(i));
    return at(i);
  }
  // A tuple of numbers that are not negative.
  std::vector<int64_t> numbers(size_t i) const {
    const PickleNode& node = at(i);
    constexpr size_t kMostAxes = 8;
    if (node.kind != PickleKind::tuple && node.kind != PickleKind::list) throw wrong(i, node);
    if (node.items.size() > kMostAxes)
      throw pickle_error(fmt::format("{}: {} axes, more than {}", name_, node.items.size(), kMostAxes));
    std::vector<int64_t> out;
    for (const uint32_t item : node.items) out.push_back(number(i, values_[item]));
    return out;
  }
  int64_t number(size_t i) const { return number(i, at(i)); }
  Error wrong(size_t i, const PickleNode& found) const {
    return pickle_error(fmt::format("{}: argument {} is {}", name_, i + 1, describe(found)));
  }

 private:
  int64_t number(size_t i, const PickleNode& node) const {
    if (node.kind != PickleKind::integer || node.integer < 0) throw wrong(i, node);
    return node.integer;
  }
  const PickleValues& values_;
  std::string name_;
  const PickleNode& args_;
};

// A short stream can ask for many copies of a long value.
void charge(PickleValues& values, uint64_t bytes) {
  constexpr uint64_t kMostCopied = 64 << 20;
  values.copied += bytes;
  if (values.copied > kMostCopied) throw pickle_error("more copies of values than any checkpoint has");
}

PickleNode tensor_node(PickleValues& values, PickleTensor tensor, PickleKind kind = PickleKind::tensor) {
  constexpr size_t kMostTensors = 1 << 18;
  if (values.tensors.size() >= kMostTensors) throw pickle_error("more tensors than any checkpoint has");
  PickleNode out;
  out.kind = kind;
  out.integer = static_cast<int64_t>(values.tensors.size());
  values.tensors.push_back(std::move(tensor));
  return out;
}

PickleNode build_tensor(PickleValues& values, const Arguments& args, Action action) {
  PickleTensor t;
  t.storage = args.of_kind(0, PickleKind::storage).integer;
  t.type = values.storages[static_cast<size_t>(t.storage)].type;
  t.offset = args.number(1);
  t.shape = args.numbers(2);
  t.strides = args.numbers(3);
  if (action == Action::tensor_v3)
    t.type = static_cast<SafetensorType>(args.of_kind(6, PickleKind::type).integer);
  if (t.shape.size() != t.strides.size())
    throw pickle_error(fmt::format("a tensor of {} axes with {} strides", t.shape.size(), t.strides.size()));
  return tensor_node(values, std::move(t));
}

PickleNode type_node(SafetensorType type) {
  PickleNode out;
  out.kind = PickleKind::type;
  out.integer = static_cast<int64_t>(type);
  return out;
}

PickleNode numpy_type(const Arguments& args) {
  const std::string_view name = args.of_kind(0, PickleKind::text).text;
  for (const auto& [text, type] : kNumpyTypes)
    if (name == text || (name.size() == 3 && (name[0] == '<' || name[0] == '|') && name.substr(1) == text))
      return type_node(type);
  throw pickle_error(fmt::format("numpy values of the type '{}'", name));
}

void check_byte_order(const PickleNode& type) {
  if (type.flag) throw pickle_error("numpy values in big-endian order");
}

PickleNode numpy_scalar(const Arguments& args) {
  const PickleNode& type = args.of_kind(0, PickleKind::type);
  check_byte_order(type);
  const auto t = static_cast<SafetensorType>(type.integer);
  const std::string_view bytes = args.of_kind(1, PickleKind::bytes).text;
  if (bytes.size() != static_cast<size_t>(size_of(t)))
    throw pickle_error(fmt::format("a numpy scalar of {} bytes", bytes.size()));
  PickleNode out;
  const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
  if (t == F32 || t == F16) {
    float v = 0;
    safetensor_decode(t, data, 1, &v);
    out.kind = PickleKind::real, out.real = double{v};
  } else if (t == F64) {
    out.kind = PickleKind::real;
    std::memcpy(&out.real, data, 8);
  } else {
    uint64_t v = 0;
    std::memcpy(&v, data, bytes.size());
    const int unused = 64 - 8 * static_cast<int>(bytes.size());
    const bool is_signed = t == I64 || t == I32 || t == I16 || t == I8;
    out.kind = t == BOOL ? PickleKind::boolean : PickleKind::integer;
    out.integer = is_signed ? static_cast<int64_t>(v << unused) >> unused : static_cast<int64_t>(v);
  }
  return out;
}

// The values of an array, in the order of its last axis or (Fortran) its first.
PickleNode array_node(PickleValues& values, SafetensorType type, std::vector<int64_t> shape, bool fortran,
                      std::string_view data) {
  PickleTensor t;
  t.type = type, t.data = data, t.shape = std::move(shape);
  t.strides.resize(t.shape.size());
  uint64_t count = 1;
  const size_t n = t.shape.size();
  for (size_t i = 0; i < n; i++) {
    const size_t axis = fortran ? i : n - 1 - i;
    if (count > INT64_MAX) throw pickle_error("a numpy array that is too large");
    t.strides[axis] = static_cast<int64_t>(count);
    if (!checked_mul(count, static_cast<uint64_t>(t.shape[axis]), &count))
      throw pickle_error("a numpy array that is too large");
  }
  uint64_t size = 0;
  if (!checked_mul(count, static_cast<uint64_t>(size_of(type)), &size) || size != data.size())
    throw pickle_error(fmt::format("a numpy array of {} values in {} bytes", count, data.size()));
  return tensor_node(values, std::move(t), PickleKind::array);
}

// UTF-8 of code points below 256 → bytes.
PickleNode encode(PickleValues& values, const Arguments& args) {
  const std::string_view text = args.of_kind(0, PickleKind::text).text;
  const std::string_view encoding = args.of_kind(1, PickleKind::text).text;
  if (encoding != "latin1" && encoding != "latin-1")
    throw pickle_error(fmt::format("bytes in '{}'", encoding));
  charge(values, text.size());
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); i++) {
    auto c = static_cast<uint8_t>(text[i]);
    if (c >= 0x80) {
      const uint8_t next = i + 1 < text.size() ? static_cast<uint8_t>(text[i + 1]) : 0;
      if ((c != 0xc2 && c != 0xc3) || (next & 0xc0) != 0x80)
        throw pickle_error("bytes that are no latin-1 text");
      c = static_cast<uint8_t>((c & 3) << 6 | (next & 0x3f));
      i++;
    }
    out.push_back(static_cast<char>(c));
  }
  values.strings.push_back(std::move(out));
  PickleNode node;
  node.kind = PickleKind::bytes;
  node.text = values.strings.back();
  return node;
}

const Allowed& allowed_of(const PickleNode& callable) {
  if (callable.kind != PickleKind::global)
    throw pickle_error(fmt::format("{} is called", describe(callable)));
  return kAllowed[static_cast<size_t>(callable.integer)];
}

PickleNode plain(PickleKind kind) {
  PickleNode out;
  out.kind = kind;
  return out;
}

}  // namespace

Error pickle_error(const std::string& what) {
  return error(ErrorKind::InvalidFile, "PyTorch checkpoint: {}", what)
      .advise("only checkpoints of tensors are read; save one with torch.save(model.state_dict(), PATH)");
}

PickleNode pickle_global(std::string_view text) {
  // Old checkpoints of GPUs name the same types elsewhere.
  std::string_view wanted = text;
  std::string cuda;
  if (text.starts_with("torch.cuda ") && text.ends_with("Storage")) {
    cuda = "torch " + std::string(text.substr(11));
    wanted = cuda;
  }
  for (size_t i = 0; i < std::size(kAllowed); i++) {
    if (kAllowed[i].name != wanted) continue;
    if (kAllowed[i].action == Action::element_type) return type_node(kAllowed[i].type);
    PickleNode out;
    out.kind = PickleKind::global;
    out.integer = static_cast<int64_t>(i);
    out.text = kAllowed[i].name;
    return out;
  }
  const std::string name = dotted(text.substr(0, 200));
  if (text.starts_with("__torch__"))
    throw pickle_error(fmt::format("it holds a TorchScript program ('{}')", name));
  throw pickle_error(
      fmt::format("it names '{}', which is neither a tensor nor a part of one; nothing was run", name));
}

PickleNode pickle_reduce(PickleValues& values, const PickleNode& callable, const PickleNode& arguments) {
  const Allowed& allowed = allowed_of(callable);
  const Arguments args(values, callable, arguments);
  switch (allowed.action) {
    case Action::dict: {
      PickleNode out = plain(PickleKind::dict);
      // OrderedDict([(key, value), …]) of the oldest files; a dict's copy; defaultdict(list).
      for (size_t i = 0; i < args.count(); i++) {
        const PickleNode& from = args.at(i);
        charge(values, from.items.size() * 12);
        if (from.kind == PickleKind::dict) out.items = from.items;
        if (from.kind == PickleKind::list)
          for (const uint32_t item : from.items) {
            const PickleNode& pair = values[item];
            if ((pair.kind != PickleKind::list && pair.kind != PickleKind::tuple) || pair.items.size() != 2)
              throw args.wrong(i, pair);
            out.items.insert(out.items.end(), pair.items.begin(), pair.items.end());
          }
      }
      return out;
    }
    case Action::set: {
      PickleNode out = plain(PickleKind::set);
      if (args.count() > 0) charge(values, args.at(0).items.size() * 4);
      if (args.count() > 0) out.items = args.of_kind(0, PickleKind::list).items;
      return out;
    }
    case Action::size: {
      PickleNode out = plain(PickleKind::tuple);
      if (args.count() > 0) charge(values, args.at(0).items.size() * 4);
      if (args.count() > 0) out.items = args.at(0).items;
      return out;
    }
    case Action::opaque:
      return plain(PickleKind::opaque);
    case Action::tensor:
    case Action::tensor_v2:
    case Action::tensor_v3:
      return build_tensor(values, args, allowed.action);
    case Action::parameter:
      return args.of_kind(0, PickleKind::tensor);
    case Action::from_type: {
      // func(*args) and a state that does not touch the values.
      const PickleNode& inner = args.at(0);
      const Action action = allowed_of(inner).action;
      if (action != Action::tensor_v2 && action != Action::tensor_v3 && action != Action::parameter)
        throw args.wrong(0, inner);
      return pickle_reduce(values, inner, args.at(2));
    }
    case Action::encode:
      return encode(values, args);
    case Action::bytes:
      if (args.count() == 2) return encode(values, args);
      if (args.count() == 0) return plain(PickleKind::bytes);
      return args.of_kind(0, PickleKind::bytes);
    case Action::numpy_type:
      return numpy_type(args);
    case Action::numpy_scalar:
      return numpy_scalar(args);
    case Action::numpy_array: {
      PickleNode out = plain(PickleKind::array);
      out.integer = -1;
      return out;
    }
    case Action::numpy_buffer: {
      const PickleNode& type = args.of_kind(1, PickleKind::type);
      check_byte_order(type);
      return array_node(values, static_cast<SafetensorType>(type.integer), args.numbers(2),
                        args.of_kind(3, PickleKind::text).text == "F",
                        args.of_kind(0, PickleKind::bytes).text);
    }
    case Action::name_only:
    case Action::storage_type:
    case Action::untyped_storage:
    case Action::element_type:
      break;
  }
  throw pickle_error(fmt::format("'{}' is called", dotted(callable.text)));
}

void pickle_build(PickleValues& values, PickleNode& node, const PickleNode& state) {
  switch (node.kind) {
    case PickleKind::dict:    // attributes such as _metadata
    case PickleKind::tensor:  // attributes of a tensor
      if (state.kind == PickleKind::dict || state.kind == PickleKind::none || state.kind == PickleKind::tuple)
        return;
      break;
    case PickleKind::type:  // numpy: (3, '<', None, …)
      if (state.kind == PickleKind::tuple && state.items.size() >= 2) {
        const PickleNode& order = values[state.items[1]];
        if (order.kind != PickleKind::text && order.kind != PickleKind::bytes) break;
        node.flag = order.text == ">";
        return;
      }
      break;
    case PickleKind::array: {  // (version, shape, type, fortran, data), the version is new
      if (state.kind != PickleKind::tuple || (state.items.size() != 4 && state.items.size() != 5)) break;
      const size_t at = state.items.size() - 4;
      const PickleNode &shape = values[state.items[at]], &type = values[state.items[at + 1]],
                       &fortran = values[state.items[at + 2]], &data = values[state.items[at + 3]];
      if (shape.kind != PickleKind::tuple || shape.items.size() > 8 || type.kind != PickleKind::type ||
          data.kind != PickleKind::bytes)
        break;
      check_byte_order(type);
      std::vector<int64_t> sizes;
      for (const uint32_t item : shape.items) {
        if (values[item].kind != PickleKind::integer || values[item].integer < 0)
          throw pickle_error("a numpy array without a valid shape");
        sizes.push_back(values[item].integer);
      }
      const auto element = static_cast<SafetensorType>(type.integer);
      node = array_node(values, element, std::move(sizes), fortran.integer != 0, data.text);
      return;
    }
    default:
      break;
  }
  throw pickle_error(fmt::format("a state ({}) for {}", describe(state), describe(node)));
}

PickleNode pickle_persistent(PickleValues& values, const PickleNode& id) {
  if (id.kind != PickleKind::tuple || id.items.size() < 5 || values[id.items[0]].text != "storage")
    throw pickle_error(fmt::format("{} where a storage is meant", describe(id)));
  const PickleNode &type = values[id.items[1]], &key = values[id.items[2]], &size = values[id.items[4]];
  if (type.kind != PickleKind::global) throw pickle_error(fmt::format("a storage of {}", describe(type)));
  const Allowed& allowed = allowed_of(type);
  if (allowed.action != Action::storage_type && allowed.action != Action::untyped_storage)
    throw pickle_error(fmt::format("a storage of the type '{}'", dotted(type.text)));
  if (key.kind != PickleKind::text)
    throw pickle_error(fmt::format("{} as the name of a storage", describe(key)));
  if (size.kind != PickleKind::integer || size.integer < 0)
    throw pickle_error(fmt::format("storage '{}': {} as its size", key.text.substr(0, 100), describe(size)));
  if (id.items.size() > 5 && values[id.items[5]].kind != PickleKind::none)
    throw pickle_error(fmt::format("storage '{}' is a part of another one", key.text.substr(0, 100)));
  constexpr size_t kMostStorages = 1 << 19;
  if (values.storages.size() >= kMostStorages) throw pickle_error("more storages than any checkpoint has");
  PickleStorage storage{allowed.type, allowed.action == Action::untyped_storage, key.text, 0};
  if (!checked_mul(static_cast<uint64_t>(size.integer), static_cast<uint64_t>(size_of(allowed.type)),
                   &storage.bytes))
    throw pickle_error(fmt::format("storage '{}' of {} values", key.text.substr(0, 100), size.integer));
  PickleNode out;
  out.kind = PickleKind::storage;
  out.integer = static_cast<int64_t>(values.storages.size());
  values.storages.push_back(storage);
  return out;
}

}  // namespace cyb
