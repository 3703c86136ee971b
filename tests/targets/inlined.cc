// Functions that an optimised program has inside of others, and copies of them that nothing calls.
#include <cstdio>
#include <cstring>

struct Text {
  char letters[64] = {0};

  bool read() {
    return fgets(letters, sizeof letters, stdin);
  }
  bool begins(char letter) const {
    return letters[0] == letter;
  }
};

int twice(int number)
{
  return 2 * number;
}

int halved(int number)
{
  return number / 2;
}

int main() {
  Text text;
  if (!text.read()) return 1;
  if (text.begins('b')) printf("%d\n", halved(static_cast<int>(strlen(text.letters))));
  printf("%d\n", twice(static_cast<int>(strlen(text.letters))));
}
