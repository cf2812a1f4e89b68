// SPDX-License-Identifier: Apache-2.0
// Which values of a run have their channels in blocks (Layout::nchw16c).
#pragma once

#include <functional>
#include <span>

#include "backend/cpu/kernel.h"

namespace cyb::cpu {

// Sets `layout` in the calls of `nodes`: nchw16c where a value is the run's own, f32 of 4 axes with 16·n
// channels and more than one position, and its maker and all its readers take it. `row(i)`: the row that
// could take node i in that layout, or null; it is taken where one of its values is. Returns for each node
// whether that is so.
std::vector<bool> choose_layouts(std::span<const NodeCall> nodes, std::span<Call> calls,
                                 const std::function<const KernelRow*(size_t)>& row);

}  // namespace cyb::cpu
