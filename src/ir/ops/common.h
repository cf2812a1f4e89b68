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

struct AxesAttrs {  // Transpose: the two axes; Squeeze, Unsqueeze: the axes
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
  std::vector<int64_t> sizes;  // empty: equal parts
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
  std::vector<int64_t> axes;  // empty: all
  bool keep = false;
  template <class V>
  void fields(V& v) {
    v("axes", axes);
    v("keep", keep);
  }
};

struct ArgAttrs {
  int64_t axis = -1;
  bool keep = false;
  template <class V>
  void fields(V& v) {
    v("axis", axis);
    v("keep", keep);
  }
};

struct TopKAttrs {
  int64_t k = 1;
  int64_t axis = -1;
  template <class V>
  void fields(V& v) {
    v("k", k);
    v("axis", axis);
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
