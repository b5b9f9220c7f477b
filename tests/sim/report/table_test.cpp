#include "sim/report/table.hpp"

#include "tests/catch.hpp"

using namespace tidegate;

TEST_CASE("the first column is left-aligned and the others right-aligned", "[table]") {
  const Table table{.header = {"path", "read"}, .rows = {{"nvme0", "12 GiB"}, {"pfs", "5 B"}}};
  CHECK(to_text(table) ==
        "path     read\n"
        "─────────────\n"
        "nvme0  12 GiB\n"
        "pfs       5 B\n");
}

TEST_CASE("alignments can be chosen, rows can be short, lines can be indented", "[table]") {
  const Table table{.rows = {{"a", "b", "c"}, {"aa"}, {"a", "bbb"}},
                    .align = {Align::right, Align::left}};
  CHECK(to_text(table, 2) ==
        "   a  b    c\n"
        "  aa\n"
        "   a  bbb\n");
}

TEST_CASE("a table without rows and header is empty", "[table]") {
  CHECK(to_text(Table{}).empty());
}

TEST_CASE("columns count characters as a terminal shows them", "[table]") {
  CHECK(columns_of("plain") == 5);
  CHECK(columns_of("µs · █▌") == 7);
  CHECK(columns_of("e\u0301") == 1);  // combining acute accent
  CHECK(columns_of("日本") == 4);
  CHECK(columns_of("\xff\xfe") == 2);  // not UTF-8
  CHECK(columns_of("\xe6") == 1);      // cut short
}

TEST_CASE("text wraps at spaces", "[table]") {
  CHECK(wrap("one two three", 8, 2) == "one two\n  three");
  CHECK(wrap("unbreakable", 4) == "unbreakable");
  CHECK(wrap("", 4).empty());
}
