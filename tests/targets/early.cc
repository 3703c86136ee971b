// Does work before main, and after it.
#include <iostream>
#include <map>
#include <string>
#include <vector>

static int rounds(int n) {
  int sum = 0;
  for (int i = 0; i < n; i++) sum += i % 3 ? i : -i;
  return sum;
}

struct Table {
  std::map<std::string, int> words;
  Table() {
    for (const char *word : {"true", "false", "null"}) words[word] = rounds(40);
  }
  ~Table() {
    if (words.size() > 5) rounds(7);
  }
};

static Table table;
static const int early = rounds(200);

int main() {
  std::string word;
  std::vector<std::string> all;
  while (std::cin >> word) {
    if (table.words.count(word)) table.words[word + word]++;
    try {
      if (word.find('[') != std::string::npos) throw word.size();
    } catch (size_t size) {
      rounds(static_cast<int>(size));
    }
    all.push_back(word);
  }
  std::cout << all.size() << early << "\n";
  return all.empty();
}
