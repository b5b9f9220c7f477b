#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/error.hpp"
#include "models/base/units.hpp"

/// Reading YAML and JSON (a subset of YAML) with places.
///
/// A file becomes a tree of Values that know where they stand. A Document walks that tree through
/// Nodes and Maps; every fault is recorded with file:line:column and reading goes on with a
/// harmless fallback, so that one run shows all problems of a file. Document::finish() throws them
/// together. A Map is strict: keys nobody asked for become problems when it goes out of scope.
namespace tidegate::yaml {

struct Entry;

struct Value {
  enum class Kind { null, scalar, sequence, map };
  Kind kind = Kind::null;
  std::string text;  ///< of a scalar
  bool quoted = false;
  Where where;
  std::vector<Entry> entries;  ///< of a map, in file order
  std::vector<Value> items;    ///< of a sequence

  const Value* find(std::string_view key) const;
};
struct Entry {
  std::string key;
  Where where;
  Value value;
};

/// Parses a file or a text; `name` stands for the file in messages. Throws InputError on a file
/// that cannot be read, is not YAML, or repeats a key.
Value load_file(const std::string& path);
Value load_text(const std::string& text, const std::string& name);

/// Sets the value at a dotted path ("policy.optimizer.paths[1].ratio") to what `text` means in
/// YAML, adding maps on the way. Throws InputError when the path runs through a scalar or beyond a
/// list.
void set(Value& root, const std::string& path, const std::string& text, const Where& where);

/// Text that YAML reads as this string: quoted unless it is a plain word.
std::string word(const std::string& text);

enum class Bound { positive, non_negative };

class Map;
class Document;

/// One value of a document together with its dotted path.
class Node {
 public:
  Node(Document& document, const Value* value, std::string path)
      : document_(&document), value_(value), path_(std::move(path)) {}

  const Value& value() const { return *value_; }
  const Where& where() const { return value_->where; }
  const std::string& path() const { return path_; }
  Document& document() const { return *document_; }
  bool is_null() const { return value_->kind == Value::Kind::null; }
  bool is_scalar() const { return value_->kind == Value::Kind::scalar; }
  bool is_map() const { return value_->kind == Value::Kind::map; }
  bool is_sequence() const { return value_->kind == Value::Kind::sequence; }

  /// Typed readings; each records a problem and returns a fallback when the value is not one.
  Map map() const;
  std::vector<Node> items() const;
  std::string text() const;
  bool flag() const;
  std::int64_t count(std::int64_t least = 0,
                     std::int64_t most = std::numeric_limits<std::int64_t>::max()) const;
  double number(double least = -std::numeric_limits<double>::infinity(),
                double most = std::numeric_limits<double>::infinity()) const;
  double fraction() const { return number(0, 1); }
  template <class Q>
  Q quantity(Bound bound = Bound::positive) const {
    return Q(base_quantity(DimensionOf<Q>::value, bound));
  }
  /// The index of the text among `choices`.
  std::size_t choice(std::span<const std::string_view> choices) const;

  /// Records that this value is wrong: "what is wrong; what would be right".
  void problem(const std::string& text) const;

 private:
  double base_quantity(Dimension dimension, Bound bound) const;

  Document* document_;
  const Value* value_;
  std::string path_;
};

/// A strict view of a map. Not copyable: its end is the moment when unknown keys are reported.
class Map {
 public:
  explicit Map(Node node) : node_(std::move(node)) {}
  Map(const Map&) = delete;
  Map& operator=(const Map&) = delete;
  ~Map();

  const Node& node() const { return node_; }
  bool has(const std::string& key);
  /// The value of a key; a missing key is a problem, and a null Node comes back.
  Node at(const std::string& key);
  std::optional<Node> find(const std::string& key);
  /// All entries, for maps whose keys are names.
  std::vector<std::pair<std::string, Node>> all();
  /// Accepts every key that is left unread (foreign formats with keys of no interest).
  void ignore_rest() { ignore_rest_ = true; }

  std::string text(const std::string& key) { return at(key).text(); }
  std::string text_or(const std::string& key, std::string fallback) {
    const auto n = find(key);
    return n ? n->text() : fallback;
  }
  bool flag_or(const std::string& key, bool fallback) {
    const auto n = find(key);
    return n ? n->flag() : fallback;
  }
  std::int64_t count(const std::string& key, std::int64_t least = 0) {
    return at(key).count(least);
  }
  std::int64_t count_or(const std::string& key, std::int64_t fallback, std::int64_t least = 0) {
    const auto n = find(key);
    return n ? n->count(least) : fallback;
  }
  double number_or(const std::string& key, double fallback, double least, double most) {
    const auto n = find(key);
    return n ? n->number(least, most) : fallback;
  }
  double fraction_or(const std::string& key, double fallback) {
    const auto n = find(key);
    return n ? n->fraction() : fallback;
  }
  template <class Q>
  Q quantity(const std::string& key, Bound bound = Bound::positive) {
    return at(key).quantity<Q>(bound);
  }
  template <class Q>
  Q quantity_or(const std::string& key, Q fallback, Bound bound = Bound::positive) {
    const auto n = find(key);
    return n ? n->quantity<Q>(bound) : fallback;
  }
  std::size_t choice_or(const std::string& key, std::span<const std::string_view> choices,
                        std::size_t fallback) {
    const auto n = find(key);
    return n ? n->choice(choices) : fallback;
  }

 private:
  Node node_;
  std::vector<std::string> asked_;
  bool ignore_rest_ = false;
};

/// A tree being read, and the problems found so far.
class Document {
 public:
  enum class Faults { collected, dropped };
  explicit Document(Value root, Faults faults = Faults::collected)
      : root_(std::move(root)), faults_(faults) {}
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  Node root() { return Node(*this, &root_, ""); }
  void problem(Where where, std::string key, std::string text);
  /// Throws InputError when anything was wrong. Call after the last Map has gone out of scope.
  void finish();

 private:
  Value root_;
  Faults faults_;
  std::vector<Problem> problems_;
};

}  // namespace tidegate::yaml
