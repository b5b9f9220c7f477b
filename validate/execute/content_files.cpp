#include "validate/execute/content_files.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "models/base/error.hpp"

namespace tidegate {
namespace {

constexpr std::int64_t page = 4096;

void make_room(rig::HostBuffer& pages, std::int64_t bytes) {
  const auto wanted = static_cast<std::size_t>(whole_pages(bytes));
  if (pages.size() < wanted) pages = rig::HostBuffer(wanted);
}

// A task without a queue of its lane's has one for itself.
class Queue {
 public:
  explicit Queue(rig::IoQueue* lane) : lane_(lane) {
    if (lane == nullptr) own_ = rig::make_io_queue({.depth = 4});
  }
  rig::IoQueue& get() const { return lane_ != nullptr ? *lane_ : *own_; }

 private:
  rig::IoQueue* lane_;
  std::unique_ptr<rig::IoQueue> own_;
};

}  // namespace

ContentFiles::Key ContentFiles::key_of(const Access& at) {
  const auto [content, place] = train::place_of(at);
  return {place, content};
}

FileKey ContentFiles::file_of(const Access& at) const {
  return {.path = plan_.pools[index(at.pool)].place.index,
          .rank = plan_.meaning.content(at.content).rank};
}

std::map<ContentFiles::Key, ContentFiles::Kept> ContentFiles::wanted(TaskId task) {
  const std::lock_guard lock(mutex_);
  std::map<Key, Kept> found;
  for (const Deed& deed : plan_.meaning.of(task)) {
    for (const Access& a : plan_.meaning.of(deed)) {
      if (a.how != Access::How::read) continue;
      const auto kept = kept_.find(key_of(a));
      if (kept != kept_.end()) found.insert(*kept);
    }
  }
  return found;
}

// Contents that share a page, or lie side by side, are one range.
std::vector<ContentFiles::Range> ContentFiles::ranges_of(const std::map<Key, Kept>& all) {
  std::vector<Kept> ordered;
  for (const auto& [key, kept] : all) ordered.push_back(kept);
  std::ranges::sort(ordered, {},
                    [](const Kept& k) { return std::tuple(k.extent->offset, k.first); });
  std::vector<Range> ranges;
  std::size_t to = 0;
  for (const Kept& k : ordered) {
    const auto first = static_cast<std::size_t>(k.first / page);
    const auto last = static_cast<std::size_t>(whole_pages(k.first + k.length) / page);
    Range* before = ranges.empty() ? nullptr : &ranges.back();
    if (before != nullptr && before->in.extent == k.extent && first <= before->last) {
      to += std::max(before->last, last) - before->last;
      before->last = std::max(before->last, last);
    } else {
      ranges.push_back({k, first, last, to});
      to += last - first;
    }
  }
  return ranges;
}

// Where a content lies in memory into which the ranges were read.
std::size_t ContentFiles::place_in(std::span<const Range> ranges, const Kept& kept) {
  const auto range = std::ranges::find_if(ranges, [&](const Range& r) {
    return r.in.extent == kept.extent && kept.first >= static_cast<std::int64_t>(r.first) * page &&
           kept.first + kept.length <= static_cast<std::int64_t>(r.last) * page;
  });
  ensure(range != ranges.end(), "what is wanted is read");
  return range->to * page + static_cast<std::size_t>(kept.first) - range->first * page;
}

void ContentFiles::bring(TaskId task, rig::IoQueue* lane, rig::HostBuffer& pages) {
  const std::map<Key, Kept> all = wanted(task);
  const std::vector<Range> ranges = ranges_of(all);
  std::map<Key, std::vector<std::byte>> brought;
  if (!ranges.empty()) {
    make_room(pages, static_cast<std::int64_t>(ranges.back().end()) * page);
    const Queue queue(lane);
    for (const Range& r : ranges) {
      const auto bytes = pages.bytes().subspan(r.to * page, (r.last - r.first) * page);
      rig_.load(task, r.in.file, queue.get(), *r.in.extent, r.first, bytes);
      read_ += static_cast<std::int64_t>(bytes.size());
    }
  }
  for (const auto& [key, kept] : all) {
    const auto bytes =
        pages.bytes().subspan(place_in(ranges, kept), static_cast<std::size_t>(kept.length));
    brought[key].assign(bytes.begin(), bytes.end());
  }
  const std::lock_guard lock(mutex_);
  under_way_[task].brought = std::move(brought);
}

void ContentFiles::put(TaskId task, const Access& at, std::span<const std::byte> bytes) {
  const std::lock_guard lock(mutex_);
  under_way_.at(task).puts.push_back({key_of(at), file_of(at), {bytes.begin(), bytes.end()}});
}

std::optional<std::vector<std::byte>> ContentFiles::get(TaskId task, const Access& at) {
  const std::lock_guard lock(mutex_);
  const UnderWay& now = under_way_.at(task);
  // What an earlier deed of the task has put is in no file yet.
  const auto put = std::find_if(now.puts.rbegin(), now.puts.rend(),
                                [&](const Put& p) { return p.key == key_of(at); });
  if (put != now.puts.rend()) return put->bytes;
  const auto found = now.brought.find(key_of(at));
  if (found == now.brought.end()) return {};
  return found->second;
}

void ContentFiles::take_away(TaskId task, rig::IoQueue* lane, rig::HostBuffer& pages) {
  std::vector<Put> puts;
  {
    const std::lock_guard lock(mutex_);
    auto node = under_way_.extract(task);
    if (!node.empty()) puts = std::move(node.mapped().puts);
  }
  if (puts.empty()) return;
  std::ranges::stable_sort(puts, {}, &Put::file);
  const Queue queue(lane);
  for (auto first = puts.begin(); first != puts.end();) {
    const auto last =
        std::find_if(first, puts.end(), [&](const Put& p) { return p.file != first->file; });
    write(task, {first, last}, queue.get(), pages);
    first = last;
  }
}

void ContentFiles::write(TaskId task, std::span<const Put> puts, rig::IoQueue& queue,
                         rig::HostBuffer& pages) {
  std::int64_t bytes = 0;
  for (const Put& p : puts) bytes += static_cast<std::int64_t>(p.bytes.size());
  if (const auto* io = std::get_if<FileIo>(&plan_.work(task)))
    bytes = std::max(bytes, static_cast<std::int64_t>(std::ceil(io->bytes.value())));
  make_room(pages, bytes);
  FileKey file = puts.front().file;
  file.bytes = bytes;
  const std::shared_ptr<Extent> extent = rig_.files().fresh(file);
  std::map<Key, Kept> kept;
  std::int64_t first = 0;
  for (const Put& p : puts) {
    std::ranges::copy(p.bytes, pages.bytes().begin() + first);
    const auto length = static_cast<std::int64_t>(p.bytes.size());
    kept[p.key] = {file, extent, first, length};
    first += length;
  }
  const auto whole = pages.bytes().first(static_cast<std::size_t>(extent->bytes));
  rig_.store(task, file, queue, *extent, whole);
  written_ += extent->bytes;
  const std::lock_guard lock(mutex_);
  for (auto& [key, k] : kept) kept_[key] = std::move(k);
}

void ContentFiles::drop(const Access& at) {
  const std::lock_guard lock(mutex_);
  kept_.erase(key_of(at));
}

void ContentFiles::free(BufferId buffer) {
  const std::lock_guard lock(mutex_);
  const auto first = kept_.lower_bound({index(buffer), ContentId{0}});
  auto last = first;
  while (last != kept_.end() && last->first.first == index(buffer)) ++last;
  kept_.erase(first, last);
}

}  // namespace tidegate
