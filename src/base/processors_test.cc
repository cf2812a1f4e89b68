// SPDX-License-Identifier: Apache-2.0
#include "base/processors.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace cyb {
namespace {

namespace fs = std::filesystem;

// Files of a made-up /proc and /sys.
class Quota : public testing::Test {
 protected:
  void TearDown() override { fs::remove_all(root_); }
  int of(const std::map<std::string, std::string>& files) {
    fs::remove_all(root_);
    for (const auto& [path, text] : files) {
      fs::create_directories((root_ + path).substr(0, (root_ + path).rfind('/')));
      std::ofstream(root_ + path) << text << "\n";
    }
    return processor_quota(root_);
  }
  const std::string root_ = testing::TempDir() + "cyb-quota-" + std::to_string(::getpid());
};

const std::string kV2 = "/sys/fs/cgroup", kV1 = "/sys/fs/cgroup/cpu,cpuacct";

TEST_F(Quota, NoLimitIsZero) {
  EXPECT_EQ(of({}), 0);
  EXPECT_EQ(of({{"/proc/self/cgroup", "0::/"}}), 0);
  EXPECT_EQ(of({{"/proc/self/cgroup", "0::/a"}, {kV2 + "/a/cpu.max", "max 100000"}}), 0);
  EXPECT_EQ(of({{"/proc/self/cgroup", "3:cpu,cpuacct:/"},
                {kV1 + "/cpu.cfs_quota_us", "-1"},
                {kV1 + "/cpu.cfs_period_us", "100000"}}),
            0);
}

TEST_F(Quota, IsRoundedUp) {
  const auto max = [&](const char* text) {
    return of({{"/proc/self/cgroup", "0::/"}, {kV2 + "/cpu.max", text}});
  };
  EXPECT_EQ(max("400000 100000"), 4);
  EXPECT_EQ(max("150000 100000"), 2);
  EXPECT_EQ(max("5000 100000"), 1);
}

TEST_F(Quota, TheSmallestOfTheGroupAndThoseAboveCounts) {
  EXPECT_EQ(of({{"/proc/self/cgroup", "0::/a/b/c"},
                {kV2 + "/a/cpu.max", "300000 100000"},
                {kV2 + "/a/b/cpu.max", "max 100000"},
                {kV2 + "/a/b/c/cpu.max", "800000 100000"},
                {kV2 + "/x/cpu.max", "100000 100000"}}),
            3);
}

// A container's files are at the top of its mount, whatever its path outside is.
TEST_F(Quota, APathOfAnotherNamespaceEndsAtTheTop) {
  EXPECT_EQ(of({{"/proc/self/cgroup", "0::/../../pod/x"}, {kV2 + "/cpu.max", "200000 100000"}}), 2);
  EXPECT_EQ(of({{"/proc/self/cgroup", "4:memory:/docker/x\n3:cpu,cpuacct:/docker/x"},
                {kV1 + "/cpu.cfs_quota_us", "250000"},
                {kV1 + "/cpu.cfs_period_us", "100000"}}),
            3);
}

TEST_F(Quota, VersionOneIsFoundByItsOwnNameToo) {
  const std::string folder = "/sys/fs/cgroup/cpu/user/x";
  EXPECT_EQ(of({{"/proc/self/cgroup", "1:name=systemd:/user\n0::/user\n2:cpuset:/\n3:cpu,cpuacct:/user/x"},
                {folder + "/cpu.cfs_quota_us", "700000"},
                {folder + "/cpu.cfs_period_us", "50000"}}),
            14);
}

TEST_F(Quota, NonsenseIsNoLimit) {
  EXPECT_EQ(of({{"/proc/self/cgroup", "nothing\n0\n:\n0::/a"}, {kV2 + "/a/cpu.max", "some 0"}}), 0);
  EXPECT_EQ(of({{"/proc/self/cgroup", "0::/a"}, {kV2 + "/a/cpu.max", "100000 0"}}), 0);
}

// This process: the mask counts, and a narrower one is followed.
TEST(Processors, FollowTheAffinityMask) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  const int all = available_processors();
  EXPECT_GE(all, 1);
  EXPECT_LE(all, CPU_COUNT(&before));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &before)) {
      CPU_SET(cpu, &one);
      break;
    }
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  EXPECT_EQ(available_processors(), 1);
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

}  // namespace
}  // namespace cyb
