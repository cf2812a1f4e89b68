// SPDX-License-Identifier: Apache-2.0
// Attributes of norms, activations, elementwise, shape, gather, reduction and control operators.
#pragma once

#include <limits>

#include "ir/attrs.h"

namespace cyb::ir {

struct RmsNormAttrs {
  double eps = 1e-5;   // inside the root
  int64_t offset = 0;  // multiplies by offset + w
  template <class V>
  void fields(V& v) {
    v("eps", eps);
    v("offset", offset);
  }
};

struct LayerNormAttrs {
  double eps = 1e-5;
  int64_t axis = -1;  // first of the normalized axes
  template <class V>
  void fields(V& v) {
    v("eps", eps);
    v("axis", axis);
  }
};

enum class GeluForm { erf, tanh, quick };
inline std::span<const char* const> enum_names(GeluForm) {
  static constexpr const char* names[] = {"erf", "tanh", "quick"};
  return names;
}
struct GeluAttrs {
  GeluForm form = GeluForm::erf;
  template <class V>
  void fields(V& v) {
    v("form", form);
  }
};

struct AlphaAttrs {  // LeakyRelu
  double alpha = 0.01;
  template <class V>
  void fields(V& v) {
    v("alpha", alpha);
  }
};

struct SoftCapAttrs {
  double cap = 30;
  template <class V>
  void fields(V& v) {
    v("cap", cap);
  }
};

struct ClampAttrs {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  template <class V>
  void fields(V& v) {
    v("min", min);
    v("max", max);
  }
};

struct NanToNumAttrs {
  double nan = 0;
  double posinf = 3.4028234663852886e38;
  double neginf = -3.4028234663852886e38;
  template <class V>
  void fields(V& v) {
    v("nan", nan);
    v("posinf", posinf);
    v("neginf", neginf);
  }
};

struct AxisAttrs {
  int64_t axis = -1;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
  }
};

struct AxesAttrs {  // Transpose: the two axes; Squeeze, Unsqueeze: the axes, or the second operand says
  std::vector<int64_t> axes;
  template <class V>
  void fields(V& v) {
    v("axes", axes);
  }
};

struct ReshapeAttrs {  // 0 keeps the operand's axis, −1 takes what is left; empty: the second operand says
  std::vector<int64_t> shape;
  bool allow_zero = false;  // 0 means an empty axis
  template <class V>
  void fields(V& v) {
    v("shape", shape);
    v("allow_zero", allow_zero);
  }
};

struct SplitAttrs {
  int64_t axis = -1;
  std::vector<int64_t>
      sizes;  // empty: what the second operand says, else equal parts (the last may be smaller)
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("sizes", sizes);
  }
};

struct CastAttrs {
  DType to = DType::f32;
  template <class V>
  void fields(V& v) {
    v("to", to);
  }
};

struct ReduceAttrs {
  std::vector<int64_t> axes;  // empty: what the second operand says; all, where that is empty or absent
  bool keep = false;
  bool noop_empty = false;  // no axes at all: nothing is reduced
  template <class V>
  void fields(V& v) {
    v("axes", axes);
    v("keep", keep);
    v("noop_empty", noop_empty);
  }
};

struct ArgAttrs {
  int64_t axis = -1;
  bool keep = false;
  bool last = false;  // of equals the last, not the first
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("keep", keep);
    v("last", last);
  }
};

struct TopKAttrs {
  int64_t k = 1;  // where no second operand says
  int64_t axis = -1;
  bool smallest = false;
  template <class V>
  void fields(V& v) {
    v("k", k);
    v("axis", axis);
    v("smallest", smallest);
  }
};

struct CumSumAttrs {
  int64_t axis = -1;
  bool exclusive = false;
  bool reverse = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("exclusive", exclusive);
    v("reverse", reverse);
  }
};

struct EluAttrs {  // gamma·x above 0, gamma·alpha·(e^x − 1) below; Selu is one of these
  double alpha = 1, gamma = 1;
  template <class V>
  void fields(V& v) {
    v("alpha", alpha);
    v("gamma", gamma);
  }
};

struct HardSigmoidAttrs {  // clamp(alpha·x + beta, 0, 1)
  double alpha = 0.2, beta = 0.5;
  template <class V>
  void fields(V& v) {
    v("alpha", alpha);
    v("beta", beta);
  }
};

struct IsInfAttrs {
  bool positive = true, negative = true;
  template <class V>
  void fields(V& v) {
    v("positive", positive);
    v("negative", negative);
  }
};

enum class PadMode { constant, reflect, edge, wrap };
inline std::span<const char* const> enum_names(PadMode) {
  static constexpr const char* names[] = {"constant", "reflect", "edge", "wrap"};
  return names;
}
struct PadAttrs {
  PadMode mode = PadMode::constant;
  template <class V>
  void fields(V& v) {
    v("mode", mode);
  }
};

enum class ScatterReduction { none, add, mul, max, min };
inline std::span<const char* const> enum_names(ScatterReduction) {
  static constexpr const char* names[] = {"none", "add", "mul", "max", "min"};
  return names;
}
struct ScatterAttrs {
  int64_t axis = 0;  // ScatterElements
  ScatterReduction reduction = ScatterReduction::none;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("reduction", reduction);
  }
};

struct GatherNdAttrs {
  int64_t batch_dims = 0;
  template <class V>
  void fields(V& v) {
    v("batch_dims", batch_dims);
  }
};

struct TriluAttrs {
  bool upper = true;
  template <class V>
  void fields(V& v) {
    v("upper", upper);
  }
};

struct UniqueAttrs {
  bool flat = true;  // over all elements, else slices along `axis`
  int64_t axis = 0;
  bool sorted = true;
  template <class V>
  void fields(V& v) {
    v("flat", flat);
    v("axis", axis);
    v("sorted", sorted);
  }
};

struct GroupNormAttrs {
  int64_t groups = 1;
  double eps = 1e-5;
  template <class V>
  void fields(V& v) {
    v("groups", groups);
    v("eps", eps);
  }
};

struct EpsAttrs {
  double eps = 1e-5;
  template <class V>
  void fields(V& v) {
    v("eps", eps);
  }
};

struct LoopAttrs {  // operands: trips i64[] or absent, condition bool[] or absent, carried…; region(i,
                    // condition, carried…)
  int64_t carried = 0;
  template <class V>
  void fields(V& v) {
    v("carried", carried);
  }
};

struct ScanAttrs {  // operands: carried…, then sequences scanned along axis 0
  int64_t carried = 0;
  template <class V>
  void fields(V& v) {
    v("carried", carried);
  }
};

}  // namespace cyb::ir
