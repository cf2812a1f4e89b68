// SPDX-License-Identifier: Apache-2.0
#include "hub/download.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "base/append_file.h"
#include "base/file.h"
#include "base/sha256.h"
#include "hub/partial.h"

namespace cyb {
namespace {

constexpr uint64_t kSyncEvery = 32ull << 20;
constexpr uint64_t kLargestGitFile = 256ull << 20;

FetchError corrupt(const std::string& label, const std::string& found, const std::string& todo) {
  return FetchError(FetchFailure::corrupt, label + ": " + found, todo);
}

const char kElsewhere[] =
    "the server or something on the way alters files: try again later or name another source";

// One download's file, digest and state over all its tries.
class Job : public BodySink {
 public:
  Job(const Download& what, FetchObserver& observer)
      : what_(what), observer_(observer), state_path_(what.target + ".partial.json") {
    const std::filesystem::path folder = std::filesystem::path(what.target).parent_path();
    if (!folder.empty()) make_directories(folder.string());
    file_ = std::make_unique<AppendFile>(what.target + ".partial");
    expected_size_ = what.size;
    expected_sha256_ = what.sha256;
    resume();
  }

  uint64_t offset() const { return file_->size(); }
  bool complete() const { return expected_size_ && file_->size() == *expected_size_ && file_->size() > 0; }
  bool resumed() const { return resumed_; }
  const std::string& validator() const { return state_.validator; }
  // Whether bytes may be appended to what is there, in the view of what is known before asking.
  bool may_continue() const {
    return offset() > 0 && (!state_.validator.empty() || !expected_sha256_.empty());
  }

  void restart() {
    file_->truncate(0);
    hash_ = Sha256();
    state_.validator.clear();
    state_.synced = 0;
    resumed_ = false;
    expected_size_ = what_.size;  // what an earlier answer said may be about an older file
    expected_sha256_ = what_.sha256;
  }

  void begin(const HttpResponse& response) override {
    const HttpHeaders& headers = response.headers;
    const std::string coding = headers.get("content-encoding");
    if (!coding.empty() && coding != "identity")
      throw corrupt(what_.label, fmt::format("the server sends it encoded as '{}' unasked", coding),
                    kElsewhere);
    if (!what_.pages_allowed && headers.get("content-type").rfind("text/html", 0) == 0)
      throw corrupt(what_.label,
                    fmt::format("{} sends a web page in place of the file", printable_url(response.url)),
                    "open the address in a browser: it may ask to sign in, or be the page about the file");
    const std::string validator = range_validator(headers.get("etag"), headers.get("last-modified"));
    const auto length = parse_size(headers.get("content-length"));
    std::optional<uint64_t> total;
    if (response.status == 200) restart();
    read_hub_headers(response);
    if (response.status == 206) {
      const auto range = parse_content_range(headers.get("content-range"));
      const bool same = state_.validator.empty() || validator.empty() || validator == state_.validator;
      if (!range || !range->first || *range->first != offset() || !same ||
          (length && *length != *range->last - *range->first + 1))
        throw RangeLie{range && range->first ? fmt::format("asked for bytes from {}, got '{}'", offset(),
                                                           headers.get("content-range"))
                                             : std::string("a part without its place, or of another file")};
      total = range->total;
      if (offset() > 0 && !resumed_) {
        resumed_ = true;
        observer_.note(fmt::format("{}: going on after {} bytes", what_.label, offset()));
      }
    } else {
      total = length;
    }
    if (total && expected_size_ && *total != *expected_size_)
      throw corrupt(
          what_.label,
          fmt::format("the server announces {} bytes, {} were to be expected", *total, *expected_size_),
          kElsewhere);
    if (total) expected_size_ = total;
    if (expected_size_ && free_space(folder()) < *expected_size_ - std::min(*expected_size_, offset()))
      throw error(ErrorKind::Io, "{}: {} bytes are still to come, '{}' has room for {}", what_.label,
                  *expected_size_ - offset(), folder(), free_space(folder()))
          .advise("free some space, or choose another place (CYB_HOME, --out), and run the command again");
    if (!validator.empty()) state_.validator = validator;
    save_state();
  }

  void data(const char* bytes, size_t size) override {
    if (expected_size_ && size > *expected_size_ - std::min(*expected_size_, offset()))
      throw corrupt(what_.label,
                    fmt::format("the server sends more than the {} bytes to be expected", *expected_size_),
                    kElsewhere);
    file_->write(bytes, size);
    hash_.update(bytes, size);
    if (offset() - state_.synced >= kSyncEvery) {
      file_->sync();
      save_state();
    }
    observer_.progress(what_.label, offset(), expected_size_.value_or(0));
  }

  // All bytes are there: is it the file that was asked for?
  std::optional<FetchError> verify() {
    const std::string sha256 = hash_.hex();
    if (file_->size() == 0 && what_.size.value_or(1) != 0)  // only a listing may say so
      return corrupt(what_.label, "the server sent an empty file", kElsewhere);
    if (file_->size() < 1024 && is_lfs_pointer_file(file_path()) && expected_sha256_ != sha256)
      return corrupt(
          what_.label, "the server sent a Git LFS pointer in place of the file",
          "use the hub's own address (hf:org/repo), or one that serves the large files themselves");
    if (expected_size_ && file_->size() != *expected_size_)
      return corrupt(what_.label,
                     fmt::format("{} bytes came, {} were to be expected", file_->size(), *expected_size_),
                     kElsewhere);
    if (!expected_sha256_.empty() && sha256 != expected_sha256_)
      return corrupt(what_.label, fmt::format("SHA-256 is {}, expected {}", sha256, expected_sha256_),
                     kElsewhere);
    if (expected_sha256_.empty() && !what_.git_sha1.empty() && file_->size() < kLargestGitFile) {
      const std::string id = git_blob_sha1(read_file(file_path()));
      if (id != what_.git_sha1)
        return corrupt(what_.label, fmt::format("its git id is {}, expected {}", id, what_.git_sha1),
                       kElsewhere);
    }
    return std::nullopt;
  }

  Downloaded publish() {
    const Downloaded done{file_->size(), hash_.hex(), resumed_};
    file_->publish(what_.target);
    remove_state();
    return done;
  }

  void discard() {
    file_->remove();
    remove_state();
  }

  // A try has ended: an empty beginning is not kept, anything else is flushed and noted.
  void pause() {
    if (offset() == 0) return discard();
    file_->sync();
    save_state();
  }

  struct RangeLie {
    std::string found;
  };

 private:
  std::string folder() const {
    const std::string path = std::filesystem::path(what_.target).parent_path().string();
    return path.empty() ? "." : path;
  }
  std::string file_path() const { return what_.target + ".partial"; }

  void resume() {
    if (offset() == 0) return;
    std::optional<PartialState> state;
    std::error_code ignored;
    if (std::filesystem::is_regular_file(state_path_, ignored))
      state = parse_partial_state(read_file(state_path_, 1 << 16));
    const bool usable = state && state->url == what_.request.url &&
                        (!what_.size || !state->size || *what_.size == *state->size) &&
                        (what_.sha256.empty() || state->sha256.empty() || state->sha256 == what_.sha256);
    if (!usable) return restart();
    state_ = *state;
    if (expected_sha256_.empty()) expected_sha256_ = state->sha256;
    if (!expected_size_) expected_size_ = state->size;
    // Without a digest nothing would notice bytes that never reached the disk before a power cut.
    if (expected_sha256_.empty() && offset() > state_.synced) file_->truncate(state_.synced);
    if (expected_size_ && offset() > *expected_size_) return restart();
    if (!may_continue()) return restart();
    const MappedFile bytes(file_path());
    for (uint64_t at = 0; at < bytes.size(); at += kSyncEvery)
      hash_.update(bytes.data() + at, std::min(kSyncEvery, bytes.size() - at));
  }

  void read_hub_headers(const HttpResponse& response) {
    if (!what_.hub_headers) return;
    std::vector<const HttpHeaders*> all{&response.headers};
    for (const HttpHeaders& hop : response.hops) all.push_back(&hop);
    for (const HttpHeaders* headers : all) {
      const std::string sha256 = sha256_of_etag(headers->get("x-linked-etag"));
      if (!sha256.empty() && expected_sha256_.empty()) expected_sha256_ = sha256;
      if (!sha256.empty() && sha256 != expected_sha256_)
        throw corrupt(what_.label,
                      fmt::format("the hub announces SHA-256 {}, expected {}", sha256, expected_sha256_),
                      "the file has changed on the hub: run the command again, or report it");
      const auto size = parse_size(headers->get("x-linked-size"));
      if (size && !expected_size_) expected_size_ = size;
      if (size && *size != *expected_size_)
        throw corrupt(
            what_.label,
            fmt::format("the hub announces {} bytes, {} were to be expected", *size, *expected_size_),
            "the file has changed on the hub: run the command again, or report it");
    }
  }

  void save_state() {
    state_.url = what_.request.url;
    state_.sha256 = expected_sha256_;
    state_.size = expected_size_;
    state_.synced = offset();
    AtomicFile out(state_path_);
    const std::string text = print_partial_state(state_);
    out.write(text.data(), text.size());
    out.commit();
  }

  void remove_state() {
    std::error_code ignored;
    std::filesystem::remove(state_path_, ignored);
  }

  const Download& what_;
  FetchObserver& observer_;
  std::string state_path_;
  std::unique_ptr<AppendFile> file_;
  Sha256 hash_;
  PartialState state_;
  std::optional<uint64_t> expected_size_;
  std::string expected_sha256_;
  bool resumed_ = false;
};

struct Tries {
  Patience patience;
  uint64_t furthest = 0;
  int lies = 0;  // answers to ranges that cannot be right
};

// True when the file is complete; false when a try is to be made again.
bool try_once(HttpClient& client, Job& job, const Download& what, Tries& tries) {
  HttpRequest request = what.request;
  request.compressed = false;
  request.headers.push_back("Accept-Encoding: identity");
  const uint64_t before = job.may_continue() ? job.offset() : 0;
  if (before == 0 && job.offset() > 0) job.restart();
  if (before > 0) {
    request.headers.push_back(fmt::format("Range: bytes={}-", before));
    if (!job.validator().empty()) request.headers.push_back("If-Range: " + job.validator());
  }
  HttpResult result;
  try {
    result = client.get(request, job);
  } catch (const Job::RangeLie& lie) {
    job.restart();
    if (++tries.lies > 1)
      throw corrupt(what.label, "the server answers wrongly to a resumed download: " + lie.found, kElsewhere);
    return false;
  }
  const long status = result.response.status;
  if (result.failure == HttpFailure::none && (status == 200 || status == 206)) return true;
  if (result.failure == HttpFailure::none && status == 416 && before > 0) {
    const auto range = parse_content_range(result.response.headers.get("content-range"));
    if (range && range->total && *range->total == job.offset()) return true;
    job.restart();
    if (++tries.lies > 1) throw status_error(result.response, what.advice);
    return false;
  }
  const bool progressed = job.offset() > tries.furthest;  // not when the same beginning came once more
  tries.furthest = std::max(tries.furthest, job.offset());
  if (tries.patience.again(result, what.label, progressed)) return false;
  if (result.failure != HttpFailure::none) throw network_error(result, request.url);
  throw status_error(result.response, what.advice);
}

}  // namespace

bool is_lfs_pointer(const std::string& head) {
  return head.rfind("version https://git-lfs.github.com/spec/", 0) == 0 ||
         head.rfind("version https://hawser.github.com/spec/", 0) == 0;
}

bool is_lfs_pointer_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(64, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(std::max<std::streamsize>(0, file.gcount())));
  return is_lfs_pointer(head);
}

Downloaded download(HttpClient& client, const Download& what, FetchObserver& observer) {
  Job job(what, observer);
  Tries tries{Patience(client.settings(), observer), job.offset()};
  bool fresh = false;  // a second try from the first byte has been made
  for (;;) {
    try {
      while (!job.complete() && !try_once(client, job, what, tries)) {
      }
    } catch (const FetchError& e) {
      if (e.failure() == FetchFailure::corrupt)
        job.discard();
      else
        job.pause();
      observer.finished(what.label);
      throw;
    } catch (const Error&) {
      try {
        job.pause();
      } catch (const Error&) {  // the disk that is full now has the older state
      }
      observer.finished(what.label);
      throw;
    }
    const auto wrong = job.verify();
    observer.finished(what.label);
    if (!wrong) return job.publish();
    // The beginning may come from another run or another server: once more, all of it.
    if (!job.resumed() || fresh) {
      job.discard();
      throw *wrong;
    }
    fresh = true;
    observer.note(fmt::format("{}; fetching it anew", wrong->message()));
    job.restart();
  }
}

}  // namespace cyb
