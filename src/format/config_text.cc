// SPDX-License-Identifier: Apache-2.0
// Config as TOML text: parse and print.
#include <set>

#include "base/utf8_check.h"
#include "format/config.h"
#include "format/toml_reader.h"

namespace cyb {
namespace {

// Builds the tree and keeps TOML's rules about what may be defined twice and what may be extended.
class Builder {
 public:
  Builder(std::string_view text, const std::string& where, int first_line)
      : reader_(text, where, first_line) {}

  ConfigTable build() {
    while (reader_.next()) {
      if (reader_.is_header())
        open(reader_.path(), reader_.is_array_header());
      else
        put(reader_.path());
    }
    return std::move(root_);
  }

 private:
  using Path = std::vector<std::string>;

  // The table that holds the last key of the path; makes the ones on the way.
  ConfigTable* parent_of(const Path& path) {
    ConfigTable* t = &root_;
    for (size_t i = 0; i + 1 < path.size(); i++) {
      ConfigValue* v = t->find(path[i]);
      if (!v) v = &t->set(path[i], ConfigTable());
      // The last element of a [[list]] is what further headers extend; lists in brackets are closed.
      if (v->array() && !v->array()->empty() && v->array()->back().table() &&
          list_headers_.count(key_of(path, i + 1)))
        v = &v->array()->back();
      if (!v->table()) throw reader_.fail(fmt::format("'{}' is {}, not a table", path[i], v->describe()));
      t = v->table();
    }
    return t;
  }

  static std::string key_of(const Path& path, size_t count) {
    std::string out;
    for (size_t i = 0; i < count; i++) {
      append_toml_string(&out, path[i]);
      out.push_back('.');
    }
    return out;
  }

  void open(const Path& path, bool array) {
    for (size_t i = 1; i <= path.size(); i++)
      if (closed_.count(key_of(path, i)))
        throw reader_.fail(fmt::format("'{}' is already complete", path[i - 1]));
    ConfigTable* parent = parent_of(path);
    ConfigValue* v = parent->find(path.back());
    const std::string key = key_of(path, path.size());
    if (array) {
      if (!v) {
        v = &parent->set(path.back(), ConfigArray());
        list_headers_.insert(key);
      }
      if (!v->array() || !list_headers_.count(key))
        throw reader_.fail(fmt::format("'{}' is already {}", path.back(), v->describe()));
      v->array()->push_back(ConfigTable());
      forget_below(key);
      current_ = v->array()->back().table();
    } else {
      if (!v) v = &parent->set(path.back(), ConfigTable());
      if (!v->table()) throw reader_.fail(fmt::format("'{}' is already {}", path.back(), v->describe()));
      if (!headers_.insert(key).second)
        throw reader_.fail(fmt::format("the table '{}' stands twice", path.back()));
      current_ = v->table();
    }
    current_key_ = key;
  }

  // A new element of a list of tables starts without the headers of the one before.
  void forget_below(const std::string& key) {
    for (auto* set : {&headers_, &list_headers_, &closed_})
      for (auto it = set->upper_bound(key); it != set->end() && it->compare(0, key.size(), key) == 0;)
        it = set->erase(it);
  }

  void put(const Path& path) {
    const Path keys = path;
    ConfigTable* t = current_;
    std::string key = current_key_;
    for (size_t i = 0; i + 1 < keys.size(); i++) {
      append_toml_string(&key, keys[i]);
      key.push_back('.');
      if (closed_.count(key) || headers_.count(key))
        throw reader_.fail(fmt::format("the table '{}' cannot be extended here", keys[i]));
      t = child(t, keys[i]);
    }
    ConfigValue v = value();
    append_toml_string(&key, keys.back());
    key.push_back('.');
    if (v.table()) closed_.insert(key);
    add(t, keys.back(), std::move(v));
  }

  ConfigTable* child(ConfigTable* t, const std::string& key) {
    ConfigValue* v = t->find(key);
    if (!v) v = &t->set(key, ConfigTable());
    if (!v->table()) throw reader_.fail(fmt::format("'{}' is {}, not a table", key, v->describe()));
    return v->table();
  }

  void add(ConfigTable* t, const std::string& key, ConfigValue v) {
    if (t->find(key)) throw reader_.fail(fmt::format("the key '{}' stands twice", key));
    t->set(key, std::move(v));
  }

  ConfigValue value() {
    switch (reader_.kind()) {
      case TomlReader::Kind::integer:
        return reader_.read_integer();
      case TomlReader::Kind::boolean:
        return reader_.read_boolean();
      case TomlReader::Kind::string: {
        std::string s;
        reader_.read_string(&s);
        return s;
      }
      case TomlReader::Kind::array: {
        ConfigArray out;
        for (reader_.begin_array(); reader_.next_element();) out.push_back(value());
        return out;
      }
      case TomlReader::Kind::table: {
        ConfigTable out;
        for (reader_.begin_table(); reader_.next_field();) {
          const Path keys = reader_.field();
          ConfigTable* t = &out;
          for (size_t i = 0; i + 1 < keys.size(); i++) t = child(t, keys[i]);
          add(t, keys.back(), value());
        }
        return out;
      }
    }
    throw reader_.fail("expected a value");
  }

  TomlReader reader_;
  ConfigTable root_;
  ConfigTable* current_ = &root_;
  std::string current_key_;
  std::set<std::string> headers_, list_headers_, closed_;
};

bool is_table_list(const ConfigValue& v) {
  if (!v.array() || v.array()->empty()) return false;
  for (const ConfigValue& element : *v.array())
    if (!element.table()) return false;
  return true;
}

void print_inline(std::string* out, const ConfigValue& v) {
  if (const int64_t* i = v.integer()) {
    out->append(std::to_string(*i));
  } else if (const bool* b = v.boolean()) {
    out->append(*b ? "true" : "false");
  } else if (const std::string* s = v.text()) {
    if (!is_utf8(*s)) throw error(ErrorKind::InvalidConfig, "the text of a key is not UTF-8");
    append_toml_string(out, *s);
  } else if (const ConfigArray* a = v.array()) {
    out->push_back('[');
    for (const ConfigValue& element : *a) {
      if (&element != &a->front()) out->append(", ");
      print_inline(out, element);
    }
    out->push_back(']');
  } else {
    out->push_back('{');
    bool first = true;
    for (const ConfigEntry& entry : *v.table()) {
      out->append(first ? " " : ", ");
      first = false;
      append_toml_key(out, entry.key);
      out->append(" = ");
      print_inline(out, entry.value);
    }
    out->append(first ? "}" : " }");
  }
}

void print_table(std::string* out, const ConfigTable& table, const std::string& name) {
  for (const ConfigEntry& entry : table) {
    if (!is_utf8(entry.key)) throw error(ErrorKind::InvalidConfig, "a key is not UTF-8");
    if (entry.value.table() || is_table_list(entry.value)) continue;
    append_toml_key(out, entry.key);
    out->append(" = ");
    print_inline(out, entry.value);
    out->push_back('\n');
  }
  for (const ConfigEntry& entry : table) {
    std::string path = name;
    if (!path.empty()) path.push_back('.');
    append_toml_key(&path, entry.key);
    if (const ConfigTable* t = entry.value.table()) {
      out->append("\n[" + path + "]\n");
      print_table(out, *t, path);
    } else if (is_table_list(entry.value)) {
      for (const ConfigValue& element : *entry.value.array()) {
        out->append("\n[[" + path + "]]\n");
        print_table(out, *element.table(), path);
      }
    }
  }
}

}  // namespace

Config Config::parse(std::string_view text, const std::string& where, int first_line) {
  if (!is_utf8(text)) throw error(ErrorKind::InvalidConfig, "{}: the text is not UTF-8", where);
  return Config(Builder(text, where, first_line).build(), where);
}

std::string Config::print() const {
  std::string out;
  print_table(&out, root_, "");
  if (!out.empty() && out.front() == '\n') out.erase(0, 1);
  return out;
}

}  // namespace cyb
