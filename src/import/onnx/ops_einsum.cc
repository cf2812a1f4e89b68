// SPDX-License-Identifier: Apache-2.0
// Einsum, as diagonals, sums, and one matrix product for each further operand.
#include <algorithm>
#include <cctype>
#include <map>

#include "import/onnx/ops.h"

namespace cyb::onnx {
namespace {

// Letters are their codes; the axes of an ellipsis count from its end, so that they broadcast.
using Labels = std::vector<int>;
constexpr int kEllipsis = 256;

struct Term {
  ValueId id = kNone;
  Labels labels;
};

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

int64_t position(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) - labels.begin();
}

class Einsum {
 public:
  // Integers multiply in f64, which holds their sums exactly up to 2^53.
  explicit Einsum(NodeContext& c) : c_(c), work_(is_float(c.dtype(0)) ? c.dtype(0) : DType::f64) {
    parse(c.attr_string("equation", ""));
  }

  ValueId run() {
    Term sum = prepare(0);
    for (size_t i = 1; i < terms_.size(); i++) sum = product(sum, prepare(i), i);
    // What the result has not is summed; the rest in its order.
    sum = reduce(sum, result_);
    std::vector<int64_t> order;
    for (int label : result_) {
      if (!contains(sum.labels, label)) c_.invalid("the equation's result has an index of no operand");
      order.push_back(position(sum.labels, label));
    }
    return c_.cast(c_.permute(sum.id, order), c_.dtype(0));
  }

 private:
  Labels parse_term(std::string_view text, int rank) {
    Labels labels;
    int letters = 0, dots = 0;
    for (char ch : text) (ch == '.' ? dots : letters)++;
    if (dots != 0 && dots != 3) c_.invalid("the equation has a '.' that is no ellipsis");
    const int ellipsis = dots ? rank - letters : 0;
    if (rank >= 0 && letters + ellipsis != rank)
      c_.invalid(fmt::format("'{}' does not fit an operand of rank {}", text, rank));
    for (size_t i = 0; i < text.size(); i++) {
      if (text[i] == '.') {
        if (text.substr(i, 3) != "...") c_.invalid("the equation has a '.' that is no ellipsis");
        for (int k = ellipsis - 1; k >= 0; k--) labels.push_back(kEllipsis + k);
        widest_ = std::max(widest_, ellipsis);
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(text[i]))) {
        labels.push_back(text[i]);
      } else {
        c_.invalid(fmt::format("the equation has a '{}'", text[i]));
      }
    }
    return labels;
  }

  void parse(std::string text) {
    std::erase_if(text, [](char ch) { return std::isspace(static_cast<unsigned char>(ch)); });
    const size_t arrow = text.find("->");
    std::string_view left = std::string_view(text).substr(0, arrow);
    for (int i = 0;; i++) {
      const size_t comma = left.find(',');
      if (i >= c_.inputs()) c_.invalid("the equation has more operands than the node");
      terms_.push_back({c_.cast(c_.in(i), work_), parse_term(left.substr(0, comma), c_.rank(i))});
      if (comma == std::string_view::npos) break;
      left.remove_prefix(comma + 1);
    }
    if (static_cast<int>(terms_.size()) != c_.inputs())
      c_.invalid("the equation has fewer operands than the node");
    if (arrow != std::string::npos) {
      std::string right = text.substr(arrow + 2);
      int letters = 0;
      for (char ch : right) letters += ch != '.';
      const bool dots = right.find('.') != std::string::npos;
      result_ = parse_term(right, letters + (dots ? widest_ : 0));
      Labels sorted = result_;
      std::sort(sorted.begin(), sorted.end());
      if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
        c_.invalid("the equation's result has an index twice");
      return;
    }
    // Without an arrow: the ellipsis, then what occurs once, by alphabet.
    std::map<int, int> seen;
    for (const Term& t : terms_)
      for (int label : t.labels) seen[label]++;
    for (int k = widest_ - 1; k >= 0; k--) result_.push_back(kEllipsis + k);
    for (auto [label, times] : seen)
      if (label < kEllipsis && times == 1) result_.push_back(label);
  }

  // Whether the result or an operand after `term` has the index.
  bool needed(int label, size_t term) const {
    if (contains(result_, label)) return true;
    for (size_t i = term + 1; i < terms_.size(); i++)
      if (contains(terms_[i].labels, label)) return true;
    return false;
  }

  Term reduce(Term t, const Labels& wanted) {
    ir::ReduceAttrs a;
    Labels left;
    for (size_t i = 0; i < t.labels.size(); i++) {
      if (contains(wanted, t.labels[i]))
        left.push_back(t.labels[i]);
      else
        a.axes.push_back(static_cast<int64_t>(i));
    }
    if (a.axes.empty()) return t;
    return {c_.op(Op::ReduceSum, {t.id}, a), left};
  }

  // An operand with diagonals taken, and summed over what no other term has.
  Term prepare(size_t index) {
    Term t = terms_[index];
    for (size_t i = 0; i < t.labels.size(); i++) {
      const auto twin =
          std::find(t.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1, t.labels.end(), t.labels[i]);
      if (twin == t.labels.end()) continue;
      t = diagonal(t, i, static_cast<size_t>(twin - t.labels.begin()));
      i = static_cast<size_t>(-1);
    }
    Labels wanted;
    for (int label : t.labels) {
      bool used = contains(result_, label);
      for (size_t i = 0; i < terms_.size() && !used; i++)
        used = i != index && contains(terms_[i].labels, label);
      if (used) wanted.push_back(label);
    }
    return reduce(t, wanted);
  }

  Term diagonal(const Term& t, size_t a, size_t b) {
    std::vector<int64_t> order;
    Labels labels;
    for (size_t i = 0; i < t.labels.size(); i++) {
      if (i == a || i == b) continue;
      order.push_back(static_cast<int64_t>(i));
      labels.push_back(t.labels[i]);
    }
    order.push_back(static_cast<int64_t>(a));
    order.push_back(static_cast<int64_t>(b));
    labels.push_back(t.labels[a]);
    const int64_t axis = static_cast<int64_t>(labels.size()) - 1;
    const ValueId n = as_scalar(c_, c_.dim_of(t.id, static_cast<int64_t>(a)));
    std::vector<int64_t> shape(labels.size(), 0);
    shape.back() = -1;
    const ValueId x = c_.reshape(c_.permute(t.id, order), shape);
    const ValueId at = c_.mul(iota(c_, n), c_.add(n, c_.i64(1)));
    return {c_.op(Op::Gather, {x, at}, ir::AxisAttrs{.axis = axis}), labels};
  }

  // Axes first … first + count − 1 become one.
  ValueId merge(ValueId x, int64_t first, int64_t count) {
    if (count == 1) return x;
    if (count == 0) return c_.unsqueeze(x, {first});
    const Dims dims = c_.type_of(x).dims;
    std::vector<int64_t> shape(static_cast<size_t>(first), 0);
    shape.push_back(-1);
    bool known = true;
    for (size_t i = static_cast<size_t>(first + count); i < dims.size(); i++) {
      known = known && dims[i].is_number();
      shape.push_back(known ? dims[i].number() : 0);
    }
    if (known) return c_.reshape(x, shape);
    std::vector<ValueId> parts;
    for (int64_t i = 0; i < first; i++) parts.push_back(c_.dim_of(x, i));
    parts.push_back(c_.i64s({-1}));
    for (int64_t i = first + count; i < static_cast<int64_t>(dims.size()); i++)
      parts.push_back(c_.dim_of(x, i));
    return reshape_to(c_, x, c_.concat(parts, 0));
  }

  // [batch, left, right] with the axes that `left` and `right` name in their terms.
  ValueId divide(ValueId z, size_t batch, const Term& x, const Labels& left, const Term& y,
                 const Labels& right) {
    if (left.size() == 1 && right.size() == 1) return z;
    const auto at = static_cast<int64_t>(batch);
    if (left.size() == 1 && right.empty()) return c_.squeeze(z, {at + 1});
    if (left.empty() && right.size() == 1) return c_.squeeze(z, {at});
    std::vector<ValueId> parts;
    for (int64_t i = 0; i < at; i++) parts.push_back(c_.dim_of(z, i));
    for (int label : left) parts.push_back(c_.dim_of(x.id, position(x.labels, label)));
    for (int label : right) parts.push_back(c_.dim_of(y.id, position(y.labels, label)));
    if (parts.empty()) return as_scalar(c_, z);
    return reshape_to(c_, z, c_.concat(parts, 0));
  }

  ValueId arrange(const Term& t, const std::vector<const Labels*>& groups) {
    std::vector<int64_t> order;
    for (const Labels* g : groups)
      for (int label : *g) order.push_back(position(t.labels, label));
    return c_.permute(t.id, order);
  }

  // [batch, left, sum]·[batch, sum, right].
  Term product(const Term& x, const Term& y, size_t term) {
    Labels batch, left, sum, right;
    for (int label : x.labels) {
      if (!contains(y.labels, label))
        left.push_back(label);
      else
        (needed(label, term) ? batch : sum).push_back(label);
    }
    for (int label : y.labels)
      if (!contains(x.labels, label)) right.push_back(label);
    const auto nb = static_cast<int64_t>(batch.size());
    auto size = [](const Labels& l) { return static_cast<int64_t>(l.size()); };
    ValueId a = arrange(x, {&batch, &left, &sum});
    Labels labels = batch;
    labels.insert(labels.end(), left.begin(), left.end());
    labels.insert(labels.end(), right.begin(), right.end());
    if (sum.empty()) {  // nothing is summed: a product of elements
      ValueId b = arrange(y, {&batch, &right});
      std::vector<int64_t> behind, before;
      for (int64_t i = 0; i < size(right); i++) behind.push_back(nb + size(left) + i);
      for (int64_t i = 0; i < size(left); i++) before.push_back(nb + i);
      if (!behind.empty()) a = c_.unsqueeze(a, behind);
      if (!before.empty()) b = c_.unsqueeze(b, before);
      return {c_.mul(a, b), labels};
    }
    const bool nt = c_.constant(y.id) || contains(sum, y.labels.back());
    ValueId b = nt ? arrange(y, {&batch, &right, &sum}) : arrange(y, {&batch, &sum, &right});
    a = merge(merge(a, nb + size(left), size(sum)), nb, size(left));
    b = nt ? merge(merge(b, nb + size(right), size(sum)), nb, size(right))
           : merge(merge(b, nb + size(sum), size(right)), nb, size(sum));
    ValueId z =
        c_.op(Op::Matmul, {a, b}, ir::MatmulAttrs{.form = nt ? ir::MatmulForm::nt : ir::MatmulForm::nn});
    return {divide(z, batch.size(), x, left, y, right), labels};
  }

  NodeContext& c_;
  DType work_;
  std::vector<Term> terms_;
  Labels result_;
  int widest_ = 0;  // axes of the longest ellipsis
};

void convert_einsum(NodeContext& c) {
  if (c.inputs() < 1) c.invalid("it has no operands");
  c.out(0, Einsum(c).run());
}

}  // namespace

void add_einsum_converters(Registry& r) { r.add("Einsum", convert_einsum); }

}  // namespace cyb::onnx
