// SPDX-License-Identifier: Apache-2.0
#include "base/interrupt.h"

#include <csignal>

namespace cyb {
namespace {

std::atomic<bool> g_raised{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

void raise_flag(int) { g_raised.store(true); }

}  // namespace

struct InterruptFlag::Saved {
  struct sigaction before;
};

InterruptFlag::InterruptFlag() : saved_(new Saved) {
  g_raised = false;
  struct sigaction action = {};
  action.sa_handler = raise_flag;  // without SA_RESTART: a waiting read ends
  ::sigaction(SIGINT, &action, &saved_->before);
}

InterruptFlag::~InterruptFlag() {
  ::sigaction(SIGINT, &saved_->before, nullptr);
  delete saved_;
}

const std::atomic<bool>* InterruptFlag::flag() const { return &g_raised; }
bool InterruptFlag::raised() const { return g_raised.load(); }
void InterruptFlag::clear() { g_raised = false; }

}  // namespace cyb
