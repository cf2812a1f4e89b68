// SPDX-License-Identifier: Apache-2.0
// Errors that are a source's fault and not this machine's: another source may be tried.
#pragma once

#include <string>

#include "base/error.h"

namespace cyb {

enum class FetchFailure {
  unreachable,  // no answer: name unknown, connection refused, dropped once too often, server errors
  refused,      // an answer that says no: 401, 403, 404, 429
  corrupt,      // an answer that cannot be right: wrong sizes, ranges, digests, pages in place of files
};

class FetchError : public Error {
 public:
  FetchError(FetchFailure failure, std::string message, std::string advice)
      : Error(failure == FetchFailure::corrupt ? ErrorKind::InvalidFile : ErrorKind::Io, std::move(message),
              std::move(advice)),
        failure_(failure) {}
  FetchFailure failure() const { return failure_; }

 private:
  FetchFailure failure_;
};

}  // namespace cyb
