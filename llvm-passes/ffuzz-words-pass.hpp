// Collects the words of a program: constants that it compares its input with. They are taken at the
// start of the pipeline, because the optimiser merges, splits and inlines comparisons. The module
// keeps its code; it only gets the section that ffuzz-words.hpp describes.
#ifndef FFUZZ_WORDS_PASS_HPP
#define FFUZZ_WORDS_PASS_HPP

#include "ffuzz-words.hpp"

#include "llvm/ADT/MapVector.h"
#include "llvm/Analysis/ConstantFolding.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

#include <map>
#include <optional>
#include <unordered_set>

using namespace llvm;

namespace {

// What the base class of domains knows about functions and calls; no object is made of it.
struct Program : fuzzfactory::DomainBase {
  using DomainBase::calleeName;
  using DomainBase::isProgramCode;
};

// Comparisons inside the standard library are not about the format of the input.
bool isCollected(const Function &F) {
  if (!Program::isProgramCode(F) || F.hasFnAttribute(Attribute::DisableSanitizerInstrumentation)) return false;
  if (F.hasLocalLinkage() || !F.isDiscardableIfUnused()) return true;
  for (const char *Library : {"_ZNSt", "_ZNKSt", "_ZSt", "_ZN9__gnu_cxx", "_ZNK9__gnu_cxx"})
    if (fuzzfactory::startsWith(F.getName(), Library)) return false;
  return true;
}

// ---- Constants that strings and tables consist of ----

// The bytes from an offset of a constant to the end of the array of bytes that it lies in.
StringRef bytesAt(const Constant *C, uint64_t Offset, const DataLayout &DL) {
  for (unsigned Depth = 0; C && Depth < 8; Depth++) {
    if (auto *Data = dyn_cast<ConstantDataSequential>(C)) {
      bool IsBytes = Data->getElementType()->isIntegerTy(8) && Offset < Data->getNumElements();
      return IsBytes ? Data->getRawDataValues().drop_front(Offset) : StringRef();
    }
    if (auto *Struct = dyn_cast<ConstantStruct>(C)) {
      const StructLayout *Layout = DL.getStructLayout(Struct->getType());
      if (Offset >= Layout->getSizeInBytes()) return {};
      unsigned Index = Layout->getElementContainingOffset(Offset);
      Offset -= (uint64_t)Layout->getElementOffset(Index);
      C = Struct->getOperand(Index);
    } else if (auto *Array = dyn_cast<ConstantArray>(C)) {
      uint64_t Size = DL.getTypeAllocSize(Array->getType()->getElementType());
      if (!Size || Offset / Size >= Array->getNumOperands()) return {};
      C = Array->getOperand(Offset / Size);
      Offset %= Size;
    } else {
      return {};
    }
  }
  return {};
}

const Value *stripOffset(const Value *V, APInt &Offset, const DataLayout &DL) {
  Offset = APInt(DL.getIndexTypeSizeInBits(V->getType()), 0);
  return V->stripAndAccumulateConstantOffsets(DL, Offset, true);
}

// The constant bytes behind a pointer, with a C string's NUL.
StringRef bytesBehind(const Value *Pointer, const DataLayout &DL) {
  if (!Pointer->getType()->isPointerTy()) return {};
  APInt Offset;
  auto *G = dyn_cast<GlobalVariable>(stripOffset(Pointer, Offset, DL));
  if (!G || !G->isConstant() || !G->hasInitializer() || Offset.isNegative()) return {};
  return bytesAt(G->getInitializer(), Offset.getZExtValue(), DL);
}

// ---- Which texts are words ----

bool isPath(StringRef Text) {
  for (StringRef Tail : {".c", ".h", ".cc", ".cpp", ".hpp"})
    if (Text.size() > Tail.size() && Text.take_back(Tail.size()) == Tail) return true;
  return Text.count('/') > 1;
}

// Messages have blanks, formats a percent sign. Bytes above 0x7f are UTF-8 or another text.
bool isWord(StringRef Text) {
  if (Text.size() < fuzzfactory::WordTable::MinBytes || Text.size() > fuzzfactory::WordTable::MaxBytes) return false;
  for (unsigned char Byte : Text)
    if (Byte <= ' ' || Byte == '%' || Byte == 0x7f) return false;
  return !isPath(Text);
}

// NAME=VALUE: tables of how a library was built.
bool isSetting(StringRef Text) {
  size_t Sign = Text.find('=');
  return Sign != 0 && Sign < Text.size() - 1 && isAlnum(Text[Sign - 1]) && isAlnum(Text[Sign + 1]);
}

// What tables have else: numbers, and the text that a name stands for.
bool isTableWord(StringRef Text) {
  return isWord(Text) && all_of(Text, [](char Byte) { return isPrint(Byte); }) && !isSetting(Text);
}

// A string with an explicit length may hold any bytes, but havoc writes runs of one byte itself.
bool isBinaryWord(StringRef Bytes) {
  return Bytes.size() >= fuzzfactory::WordTable::MinBytes && Bytes.size() <= fuzzfactory::WordTable::MaxBytes &&
         Bytes.find_first_not_of(Bytes.front()) != StringRef::npos && !isPath(Bytes);
}

StringRef untilNul(StringRef Bytes) { return Bytes.take_front(Bytes.find('\0')); }

// ---- Integers ----

bool isPowerOrNextToOne(uint64_t N) {
  return isPowerOf2_64(N) || isPowerOf2_64(N + 1) || (N && isPowerOf2_64(N - 1));
}

// Checks for overflow: the largest number of a type or a tenth of it, less some bytes.
bool isNearLimit(uint64_t N) {
  auto IsNear = [N](uint64_t Limit, uint64_t Distance) { return N + Distance > Limit && N < Limit + Distance; };
  for (unsigned Bits = 28; Bits < 64; Bits++)
    if (IsNear(1ull << Bits, 512)) return true;
  for (uint64_t Largest : {uint64_t(INT32_MAX), uint64_t(UINT32_MAX), uint64_t(INT64_MAX), UINT64_MAX})
    if (IsNear(Largest / 10, 16)) return true;
  return false;
}

// What havoc writes without a dictionary.
bool isOrdinary(int64_t N) {
  uint64_t Size = N < 0 ? 0 - (uint64_t)N : (uint64_t)N;
  return Size < 256 || isPowerOrNextToOne(Size) || isNearLimit(Size) || Size == 1000 || Size == 100663045 || Size == 100663046;
}

// C compares small types as int: the type before that is the one of the input.
const Value *beforePromotion(const Value *V) {
  while (isa<ZExtInst>(V) || isa<SExtInst>(V)) V = cast<CastInst>(V)->getOperand(0);
  return V;
}

// Limits of loops: the variable only gets constants and sums of itself and constants.
bool isCounter(const Value *V) {
  auto *Load = dyn_cast<LoadInst>(beforePromotion(V));
  auto *Variable = Load ? dyn_cast<AllocaInst>(Load->getPointerOperand()) : nullptr;
  if (!Variable || Variable->hasNUsesOrMore(32)) return false;
  auto Keeps = [Variable](const User *U) {
    if (isa<LoadInst>(U) || isa<DbgInfoIntrinsic>(U) || isa<CastInst>(U)) return true;
    if (auto *Call = dyn_cast<IntrinsicInst>(U)) return Call->isLifetimeStartOrEnd();
    auto *Store = dyn_cast<StoreInst>(U);
    if (!Store || Store->getPointerOperand() != Variable) return false;
    if (isa<ConstantInt>(Store->getValueOperand())) return true;
    auto *Sum = dyn_cast<BinaryOperator>(Store->getValueOperand());
    auto *Old = Sum ? dyn_cast<LoadInst>(beforePromotion(Sum->getOperand(0))) : nullptr;
    return Old && Old->getPointerOperand() == Variable && isa<ConstantInt>(Sum->getOperand(1));
  };
  return all_of(Variable->users(), Keeps);
}

// Bytes that an integer has in the input: those of its value, and for a negative one of its type.
unsigned bytesOf(int64_t N, const Value *Compared) {
  unsigned Declared = beforePromotion(Compared)->getType()->getIntegerBitWidth();
  unsigned Bits = N < 0 ? Declared : Log2_64((uint64_t)N) + 1;
  if (N < 0 && Bits > 32 && N >= INT32_MIN) Bits = 32;
  return Bits <= 16 ? 2 : Bits <= 32 ? 4 : 8;
}

// ---- Calls that compare ----

// How a function's name says that it compares. Names are in lower case.
bool hasAny(StringRef Name, ArrayRef<const char *> Parts) {
  return any_of(Parts, [Name](const char *Part) { return Name.contains(Part); });
}

bool isComparisonName(StringRef Name) {
  return hasAny(Name, {"cmp", "equal", "compare", "strstr", "strcasestr", "strnstr", "memmem", "strcoll", "match", "prefix",
                       "suffix", "starts_with", "startswith", "ends_with", "endswith", "find", "contains", "keyword",
                       "operator==", "operator!=", "streq", "str_eq", "memeq"});
}

// Functions that take texts of the program's own: messages, names of files and what is written.
bool isOutputName(StringRef Name) {
  return hasAny(Name, {"print", "log", "err", "warn", "msg", "message", "assert", "puts", "write", "dump", "emit", "format",
                       "trace", "debug", "append", "output", "open", "strcat", "strcpy", "memcpy", "copy", "getenv",
                       "add", "set", "register", "create", "strspn", "strcspn", "strpbrk", "strchr", "strtok"});
}

// Their last argument or the one behind the string is its length.
bool hasLength(StringRef Name) {
  return hasAny(Name, {"memcmp", "bcmp", "ncmp", "ncase", "nicmp", "memmem", "strnstr", "memeq", "nequal"});
}

// The function's own name in lower case, without classes and types.
std::string plainName(const CallBase &Call) {
  StringRef Name = Program::calleeName(Call);
  ItaniumPartialDemangler Demangler;
  std::string Plain = Name.str();
  if (fuzzfactory::startsWith(Name, "_Z") && !Demangler.partialDemangle(Plain.c_str())) {
    size_t Size = 0;
    if (char *Base = Demangler.getFunctionBaseName(nullptr, &Size)) {
      Plain = Base;
      std::free(Base);
    }
  }
  return StringRef(Plain).lower();
}

// Constructors of views and strings, which take the text that is compared later.
bool isConstructor(const CallBase &Call) {
  StringRef Name = Program::calleeName(Call);
  // Templates, and libc++'s, which have a tag of their version.
  return fuzzfactory::startsWith(Name, "_ZN") && any_of(StringRef("EIB"), [Name](char Next) {
           return Name.contains(std::string("C1") + Next) || Name.contains(std::string("C2") + Next);
         });
}

// The key of a container of the standard library: input is looked up in what has keys.
bool takesKey(const CallBase &Call, unsigned Index, StringRef Plain) {
  StringRef Name = Program::calleeName(Call);
  if (Index != 1 || !Call.arg_size() || !(Name.contains("map") || Name.contains("set"))) return false;
  bool IsLibrary = fuzzfactory::startsWith(Name, "_ZNSt") || fuzzfactory::startsWith(Name, "_ZNKSt");
  constexpr StringRef Takers[] = {"operator[]", "at", "count", "emplace", "try_emplace", "insert", "insert_or_assign"};
  return IsLibrary && is_contained(Takers, Plain);
}

// ""sv and ""s.
bool isLiteral(const CallBase &Call) {
  StringRef Name = Program::calleeName(Call);
  return fuzzfactory::startsWith(Name, "_ZN") && (Name.contains("li2svE") || Name.contains("li1sE"));
}

bool isComparedWithZero(const Value *Result) {
  return any_of(Result->users(), [](const User *U) {
    if (isa<ZExtInst>(U) || isa<SExtInst>(U) || isa<TruncInst>(U)) return isComparedWithZero(U);
    auto *Cmp = dyn_cast<ICmpInst>(U);
    auto *Zero = Cmp && Cmp->isEquality() ? dyn_cast<Constant>(Cmp->getOperand(1)) : nullptr;
    return Zero && Zero->isNullValue();
  });
}

// Two pointers, and a result that is true or false.
bool isComparisonShape(const CallBase &Call) {
  if (!Call.getType()->isIntegerTy() || Call.getFunctionType()->isVarArg()) return false;
  unsigned Pointers = count_if(Call.args(), [](const Use &A) { return A->getType()->isPointerTy(); });
  return Pointers >= 2 && (Call.getType()->isIntegerTy(1) || isComparedWithZero(&Call));
}

// The strings that a value can be: directly, by choice, or through a local variable or object.
class Strings {
public:
  Strings(const DataLayout &DL) : DL(DL) {}

  SmallVector<StringRef, 4> of(const Value *V) {
    Found.clear();
    Budget = MaxSteps;
    resolve(V, 5);
    return Found;
  }

private:
  static constexpr unsigned MaxFound = 8, MaxSteps = 128; // values and uses that are looked at
  const DataLayout &DL;
  unsigned Budget = 0;
  SmallVector<StringRef, 4> Found;

  void resolve(const Value *V, unsigned Depth) {
    if (!Depth || !Budget || Found.size() >= MaxFound) return;
    Budget--;
    if (V->getType()->isPointerTy()) {
      APInt Offset;
      const Value *Base = stripOffset(V, Offset, DL);
      if (isa<GlobalVariable>(Base)) return resolveGlobal(V, *cast<GlobalVariable>(Base), Depth);
      V = Base;
    }
    if (auto *Phi = dyn_cast<PHINode>(V)) {
      for (const Value *In : Phi->incoming_values()) resolve(In, Depth - 1);
    } else if (auto *Select = dyn_cast<SelectInst>(V)) {
      resolve(Select->getTrueValue(), Depth - 1);
      resolve(Select->getFalseValue(), Depth - 1);
    } else if (auto *Load = dyn_cast<LoadInst>(V)) {
      resolveLoad(*Load, Depth);
    } else if (auto *Part = dyn_cast<ExtractValueInst>(V)) {
      resolve(Part->getAggregateOperand(), Depth - 1);
    } else if (auto *Call = dyn_cast<CallBase>(V)) {
      if (isLiteral(*Call) && Call->arg_size()) resolve(Call->getArgOperand(0), Depth - 1);
    } else if (auto *Local = dyn_cast<AllocaInst>(V)) {
      resolveWrites(*Local, Depth);
    }
  }

  // A view that is constant holds the pointer among its fields.
  void resolveGlobal(const Value *Pointer, const GlobalVariable &G, unsigned Depth) {
    StringRef Bytes = bytesBehind(Pointer, DL);
    if (!Bytes.empty()) return Found.push_back(Bytes);
    if (!G.isConstant() || !G.hasInitializer()) return;
    auto *Struct = dyn_cast<ConstantStruct>(G.getInitializer());
    if (!Struct || Struct->getNumOperands() > 3) return;
    for (const Use &Field : Struct->operands()) resolve(Field, Depth - 1);
  }

  void resolveLoad(const LoadInst &Load, unsigned Depth) {
    if (!Load.getType()->isPointerTy() && !Load.getType()->isStructTy()) return;
    if (auto *Pointer = dyn_cast<Constant>(Load.getPointerOperand())) {
      auto *G = dyn_cast<GlobalVariable>(getUnderlying(Pointer));
      if (!G || !G->isConstant() || !G->hasInitializer() || !Load.getType()->isPointerTy()) return;
      if (Constant *C = ConstantFoldLoadFromConstPtr(const_cast<Constant *>(Pointer), Load.getType(), DL))
        resolve(C, Depth - 1);
      return;
    }
    APInt Offset;
    const Value *Base = stripOffset(Load.getPointerOperand(), Offset, DL);
    if (isa<AllocaInst>(Base)) resolve(Base, Depth - 1);
  }

  const Value *getUnderlying(const Value *Pointer) {
    APInt Offset;
    return stripOffset(Pointer, Offset, DL);
  }

  // What is stored, copied or constructed into a local variable or a part of it.
  void resolveWrites(const Value &Target, unsigned Depth) {
    for (const User *U : Target.users()) {
      if (!Budget || Found.size() >= MaxFound) return;
      Budget--;
      if (auto *Store = dyn_cast<StoreInst>(U)) {
        if (Store->getPointerOperand() == &Target) resolve(Store->getValueOperand(), Depth - 1);
      } else if (auto *Copy = dyn_cast<MemCpyInst>(U)) {
        if (Copy->getRawDest() == &Target) resolve(Copy->getRawSource(), Depth - 1);
      } else if (auto *Call = dyn_cast<CallBase>(U)) {
        if (Call->arg_size() > 1 && Call->getArgOperand(0) == &Target && (isConstructor(*Call) || isLiteral(*Call)))
          resolve(Call->getArgOperand(1), Depth - 1);
      } else if (isa<GetElementPtrInst>(U) || isa<BitCastInst>(U)) {
        resolveWrites(*U, Depth);
      }
    }
  }
};

// ---- Tables ----

// The strings of each element of an array, by their place in the element.
class Columns {
public:
  Columns(const DataLayout &DL) : DL(DL) {}

  void addRow(const Constant *Element) {
    unsigned Column = 0;
    addFields(Element, Column, 3);
    Rows++;
  }

  void addRow(StringRef Bytes) {
    addText(Bytes, true, 0);
    Rows++;
  }

  // Runs of at least this length. In a table with messages the other strings are for people, too.
  template <class Use> void forEachWord(unsigned LeastRun, Use Take) const {
    if (any_of(Cells, isMessages)) return;
    for (const auto &Column : Cells) {
      if (longestRun(Column) < LeastRun) continue;
      std::vector<StringRef> Words;
      for (const Cell &C : Column)
        if (isTableWord(C.Text)) Words.push_back(C.Text);
      size_t Taken = std::min(Words.size(), MaxTaken);
      for (size_t I = 0; I < Taken; I++) Take(Words[I * Words.size() / Taken]);
    }
  }

private:
  static constexpr unsigned MaxColumns = 16;
  // Of a larger table (HTML has 2125 named characters) an even sample, or it would bury all other words.
  static constexpr size_t MaxTaken = 256;
  struct Cell {
    size_t Row;
    StringRef Text;
  };
  const DataLayout &DL;
  size_t Rows = 0;
  SmallVector<std::vector<Cell>, 4> Cells;

  void addFields(const Constant *C, unsigned &Column, unsigned Depth) {
    if (Column >= MaxColumns) return;
    if (C->getType()->isPointerTy()) return addText(bytesBehind(C, DL), true, Column++);
    if (auto *Bytes = dyn_cast<ConstantDataSequential>(C); Bytes && Bytes->getElementType()->isIntegerTy(8))
      return addText(Bytes->getRawDataValues(), false, Column++);
    if (!Depth || !(isa<ConstantStruct>(C) || isa<ConstantArray>(C))) {
      Column++;
      return;
    }
    for (const Use &Field : C->operands()) addFields(cast<Constant>(Field), Column, Depth - 1);
  }

  // An array that is full of bytes may do without the NUL.
  void addText(StringRef Bytes, bool NeedsNul, unsigned Column) {
    StringRef Text = untilNul(Bytes);
    if (Text.empty() || (NeedsNul && Text.size() == Bytes.size())) return;
    if (!NeedsNul && Bytes.find_first_not_of('\0', Text.size()) != StringRef::npos) return;
    if (any_of(Text, [](char Byte) { return (unsigned char)Byte < ' ' && Byte != '\n'; })) return;
    if (Cells.size() <= Column) Cells.resize(Column + 1);
    Cells[Column].push_back({Rows, Text});
  }

  static bool isMessages(const std::vector<Cell> &Column) {
    auto HasBlank = [](const Cell &C) { return C.Text.contains(' ') || C.Text.contains('%'); };
    return 3 * (size_t)count_if(Column, HasBlank) > Column.size();
  }

  static size_t longestRun(const std::vector<Cell> &Column) {
    size_t Longest = 0, Run = 0;
    for (size_t I = 0; I < Column.size(); I++) {
      Run = I && Column[I].Row == Column[I - 1].Row + 1 ? Run + 1 : 1;
      Longest = std::max(Longest, Run);
    }
    return Longest;
  }
};

// ---- Words that are compared byte by byte ----

// Clang's IR at the start of the pipeline: variables are in memory, and `&&` is a branch.
//   if (p[0] == 'G' && p[1] == 'I' && p[2] == 'F')
class ByteChains {
public:
  ByteChains(Function &F, const DataLayout &DL) : DL(DL) {
    for (BasicBlock &Block : F)
      if (std::optional<Link> Found = linkOf(Block)) Links[&Block] = *Found;
    for (auto &[Block, Link] : Links)
      if (const BasicBlock *Next = nextOf(Link)) Inner.insert(Next);
  }

  // Of each chain its bytes and its first comparison.
  template <class Use> void forEach(Use Take) const {
    for (auto &[Block, First] : Links) {
      if (Inner.count(Block)) continue;
      std::string Bytes(1, First.Byte);
      const Link *Last = &First;
      while (const BasicBlock *Next = nextOf(*Last)) {
        Last = &Links.find(Next)->second;
        Bytes += Last->Byte;
        if (Bytes.size() > fuzzfactory::WordTable::MaxBytes) break;
      }
      if (Bytes.size() > 1) Take(StringRef(Bytes), *First.Where);
    }
  }

private:
  // One byte of an input: where it lies, a variable index, and an offset.
  struct Link {
    const Value *Base = nullptr, *Index = nullptr;
    int64_t Offset = 0, Step = 0; // by which the comparison moves the pointer (`*p++`) or the index
    char Byte = 0;
    const ICmpInst *Where = nullptr;
    const BasicBlock *Next = nullptr; // where the program goes on with an equal byte
  };
  const DataLayout &DL;
  MapVector<const BasicBlock *, Link> Links;
  DenseSet<const BasicBlock *> Inner;

  const BasicBlock *nextOf(const Link &L) const {
    auto Next = Links.find(L.Next);
    if (Next == Links.end()) return nullptr;
    const Link &N = Next->second;
    bool IsNext = N.Offset + L.Step == L.Offset + 1 && isSame(N.Base, L.Base, 4) && isSame(N.Index, L.Index, 4);
    return IsNext ? L.Next : nullptr;
  }

  // Both are read from the same variables.
  bool isSame(const Value *A, const Value *B, unsigned Depth) const {
    if (A == B) return true;
    if (!A || !B || !Depth) return false;
    APInt OffsetA, OffsetB;
    if (A->getType()->isPointerTy() && B->getType()->isPointerTy()) {
      A = stripOffset(A, OffsetA, DL);
      B = stripOffset(B, OffsetB, DL);
      if (OffsetA != OffsetB) return false;
      if (A == B) return true;
    }
    auto *LoadA = dyn_cast<LoadInst>(A), *LoadB = dyn_cast<LoadInst>(B);
    return LoadA && LoadB && isSame(LoadA->getPointerOperand(), LoadB->getPointerOperand(), Depth - 1);
  }

  // What is added in this block to a variable that was read.
  int64_t stepOf(const BasicBlock &Block, const Value *Variable) const {
    auto *Read = dyn_cast_or_null<LoadInst>(Variable);
    if (!Read) return 0;
    for (const Instruction &I : reverse(Block)) {
      auto *Store = dyn_cast<StoreInst>(&I);
      if (!Store || !isSame(Store->getPointerOperand(), Read->getPointerOperand(), 4)) continue;
      if (Store->getValueOperand()->getType()->isPointerTy()) {
        APInt Offset;
        bool IsMoved = isSame(stripOffset(Store->getValueOperand(), Offset, DL), Read, 1);
        return IsMoved ? Offset.getSExtValue() : 0;
      }
      auto *Sum = dyn_cast<BinaryOperator>(Store->getValueOperand());
      auto *Step = Sum && Sum->getOpcode() == Instruction::Add ? dyn_cast<ConstantInt>(Sum->getOperand(1)) : nullptr;
      return Step && Step->getBitWidth() <= 64 && isSame(Sum->getOperand(0), Read, 4) ? Step->getSExtValue() : 0;
    }
    return 0;
  }

  static std::optional<Link> none() { return {}; }

  std::optional<Link> linkOf(BasicBlock &Block) const {
    auto *Branch = dyn_cast_or_null<BranchInst>(Block.getTerminator());
    auto *Cmp = Branch && Branch->isConditional() ? dyn_cast<ICmpInst>(Branch->getCondition()) : nullptr;
    auto *Byte = Cmp && Cmp->isEquality() ? dyn_cast<ConstantInt>(Cmp->getOperand(1)) : nullptr;
    if (!Byte || Byte->getBitWidth() > 64 || Byte->getSExtValue() < -128 || Byte->getSExtValue() > 255) return none();
    Link L;
    L.Byte = (char)Byte->getSExtValue();
    L.Where = Cmp;
    L.Next = Branch->getSuccessor(Cmp->getPredicate() == CmpInst::ICMP_EQ ? 0 : 1);
    auto *Load = dyn_cast<LoadInst>(withoutCase(beforePromotion(Cmp->getOperand(0))));
    if (!Load || !Load->getType()->isIntegerTy(8) || !addAddress(Load->getPointerOperand(), L)) return none();
    L.Step = stepOf(Block, L.Base) + stepOf(Block, L.Index);
    return L;
  }

  // tolower(c) == 'g', where glibc has a table of all characters.
  static const Value *withoutCase(const Value *V) {
    auto Is = [](const Value *Callee, StringRef Lower, StringRef Upper) {
      auto *Call = dyn_cast<CallInst>(Callee);
      return Call && (Program::calleeName(*Call) == Lower || Program::calleeName(*Call) == Upper);
    };
    if (Is(V, "tolower", "toupper") && cast<CallInst>(V)->arg_size() == 1)
      return beforePromotion(cast<CallInst>(V)->getArgOperand(0));
    auto *Entry = dyn_cast<LoadInst>(V);
    auto *Place = Entry ? dyn_cast<GetElementPtrInst>(Entry->getPointerOperand()) : nullptr;
    auto *Table = Place ? dyn_cast<LoadInst>(Place->getPointerOperand()) : nullptr;
    if (!Table || !Is(Table->getPointerOperand(), "__ctype_tolower_loc", "__ctype_toupper_loc")) return V;
    return beforePromotion(Place->getOperand(Place->getNumOperands() - 1));
  }

  // `p[2]`, `p[i + 2]`, where p is a pointer or an array.
  bool addAddress(const Value *Address, Link &L) const {
    for (unsigned Depth = 0; Depth < 4; Depth++) {
      APInt Offset;
      Address = stripOffset(Address, Offset, DL);
      L.Offset += Offset.getSExtValue();
      auto *Element = dyn_cast<GetElementPtrInst>(Address);
      if (!Element) break;
      const Value *Index = Element->getOperand(Element->getNumOperands() - 1);
      if (L.Index || !Element->getResultElementType()->isIntegerTy(8) || !addIndex(Index, L)) return false;
      for (unsigned I = 1; I + 1 < Element->getNumOperands(); I++) {
        auto *Zero = dyn_cast<ConstantInt>(Element->getOperand(I));
        if (!Zero || !Zero->isZero()) return false;
      }
      Address = Element->getPointerOperand();
    }
    L.Base = Address;
    return isa<LoadInst>(L.Base) || isa<AllocaInst>(L.Base) || isa<GlobalVariable>(L.Base);
  }

  static bool addIndex(const Value *Index, Link &L) {
    Index = beforePromotion(Index);
    if (auto *Sum = dyn_cast<BinaryOperator>(Index); Sum && Sum->getOpcode() == Instruction::Add)
      if (auto *Constant = dyn_cast<ConstantInt>(Sum->getOperand(1)); Constant && Constant->getBitWidth() <= 64) {
        L.Offset += Constant->getSExtValue();
        Index = beforePromotion(Sum->getOperand(0));
      }
    L.Index = Index;
    return isa<LoadInst>(Index);
  }
};

// Names in one string, each with a NUL behind it.
bool isPackedTable(StringRef Bytes) {
  constexpr size_t MinNames = 4;
  if (Bytes.size() < 3 * MinNames || Bytes.back() != '\0') return false;
  size_t Names = 0;
  for (StringRef Rest = Bytes; !Rest.empty(); Names++) {
    StringRef Name = untilNul(Rest);
    if (Name.empty()) return Rest.find_first_not_of('\0') == StringRef::npos && Names >= MinNames;
    if (Name.size() > fuzzfactory::WordTable::MaxBytes || !all_of(Name, [](char Byte) { return isPrint(Byte) && Byte != ' '; }))
      return false;
    Rest = Rest.drop_front(std::min(Rest.size(), Name.size() + 1));
  }
  return Names >= MinNames;
}

// ---- The collection ----

class Collector : public InstVisitor<Collector> {
public:
  explicit Collector(Module &M) : M(M), DL(M.getDataLayout()), Places(M), Values(DL) {}

  void run() {
    SmallVector<Function *, 32> Functions;
    for (Function &F : M)
      if (isCollected(F)) Functions.push_back(&F);
    for (Function *F : Functions) findStates(*F);
    for (Function *F : Functions) {
      visit(F);
      addComparedIntegers();
      ByteChains(*F, DL).forEach([&](StringRef Bytes, const Instruction &Where) {
        if (isBinaryWord(Bytes)) Words.add(Bytes, "bytes", [&] { return Places.of(Where); });
      });
    }
    for (const GlobalVariable &G : M.globals()) visitGlobal(G);
    Words.writeTo(M);
  }

  void visitICmpInst(ICmpInst &Cmp) {
    for (unsigned Side : {0, 1})
      if (auto *Constant = dyn_cast<ConstantInt>(Cmp.getOperand(Side)))
        if (isInteger(*Constant, *Cmp.getOperand(1 - Side))) Compared.push_back({Constant, &Cmp, 1 - Side});
  }

  // The elements of a container, which the function constructs from texts.
  void visitAllocaInst(AllocaInst &Variable) {
    if (!isa<ArrayType>(Variable.getAllocatedType())) return;
    std::map<uint64_t, const CallBase *> Elements;
    addConstructors(Variable, 0, Elements);
    if (Elements.empty()) return;
    Columns Table(DL);
    for (const auto &Element : Elements) Table.addRow(bytesBehind(Element.second->getArgOperand(1), DL));
    const CallBase &First = *Elements.begin()->second;
    Table.forEachWord(2, [&](StringRef Word) { Words.add(Word, "table", [&] { return Places.of(First); }); });
  }

  // A large switch maps numbers to numbers (a character to another): its cases are no words.
  void visitSwitchInst(SwitchInst &Switch) {
    constexpr unsigned MaxCases = 256;
    if (Switch.getNumCases() > MaxCases) return;
    const Value &Condition = *Switch.getCondition();
    for (auto &Case : Switch.cases())
      if (isInteger(*Case.getCaseValue(), Condition)) addInteger(*Case.getCaseValue(), Condition, "case", Switch);
  }

  void visitCallBase(CallBase &Call) {
    if (isa<IntrinsicInst>(Call) || Call.isInlineAsm() || Call.getType()->isVoidTy() || Call.arg_size() < 1) return;
    for (unsigned I = 0; I < Call.arg_size(); I++) {
      Value *Argument = Call.getArgOperand(I);
      if (!Argument->getType()->isPointerTy() && !Argument->getType()->isStructTy()) continue;
      for (StringRef Bytes : Values.of(Argument)) addArgument(Call, I, Bytes);
    }
  }

private:
  Module &M;
  const DataLayout &DL;
  fuzzfactory::WordPlaces Places;
  fuzzfactory::WordTable Words;
  Strings Values;
  std::unordered_set<int64_t> States; // any number may be one: a DenseSet has two keys of its own
  struct Comparison {
    const ConstantInt *Constant;
    const ICmpInst *Where;
    unsigned OtherSide;
  };
  std::vector<Comparison> Compared; // of the function that is visited

  // What constructs parts of a variable from texts, by their offsets.
  void addConstructors(const Value &Part, uint64_t Offset, std::map<uint64_t, const CallBase *> &Elements) {
    for (const User *U : Part.users()) {
      auto *Place = dyn_cast<GEPOperator>(U);
      APInt Step(DL.getIndexTypeSizeInBits(Part.getType()), 0);
      if (isa<BitCastInst>(U) || (Place && Place->accumulateConstantOffset(DL, Step)))
        addConstructors(*U, Offset + Step.getZExtValue(), Elements);
      auto *Call = dyn_cast<CallBase>(U);
      if (!Call || Call->arg_size() < 2 || Call->getArgOperand(0) != &Part || !isConstructor(*Call)) continue;
      if (!bytesBehind(Call->getArgOperand(1), DL).empty()) Elements[Offset] = Call;
    }
  }

  // The states of a state machine: the program itself stores most cases of a switch.
  void findStates(Function &F) {
    for (BasicBlock &Block : F) {
      auto *Switch = dyn_cast_or_null<SwitchInst>(Block.getTerminator());
      if (!Switch || Switch->getNumCases() < 4 || isSmallSwitch(*Switch)) continue;
      if (Stored.empty()) findStored();
      size_t Own = count_if(Switch->cases(), [&](auto &Case) { return Stored.count(numberOf(*Case.getCaseValue())); });
      if (2 * Own < Switch->getNumCases()) continue;
      for (auto &Case : Switch->cases()) States.insert(numberOf(*Case.getCaseValue()));
    }
  }

  std::unordered_set<int64_t> Stored;

  // Constants that are stored anywhere but in local variables. Only a few modules need them.
  void findStored() {
    Stored.insert(0);
    for (Function &F : M)
      for (Instruction &I : instructions(F))
        if (auto *Store = dyn_cast<StoreInst>(&I); Store && !isa<AllocaInst>(Store->getPointerOperand()))
          if (auto *Constant = dyn_cast<ConstantInt>(Store->getValueOperand())) Stored.insert(numberOf(*Constant));
  }

  static bool isSmallSwitch(const SwitchInst &Switch) {
    return all_of(Switch.cases(), [](auto &Case) { return isOrdinary(numberOf(*Case.getCaseValue())); });
  }

  // 0 is no word.
  static int64_t numberOf(const ConstantInt &Constant) {
    return Constant.getBitWidth() < 16 || Constant.getBitWidth() > 64 ? 0 : Constant.getSExtValue();
  }

  bool isInteger(const ConstantInt &Constant, const Value &Other) const {
    int64_t N = numberOf(Constant);
    return Other.getType()->isIntegerTy() && !isOrdinary(N) && !States.count(N) && !isCounter(&Other);
  }

  // A function with very many sorts characters into classes.
  void addComparedIntegers() {
    constexpr size_t MaxCompared = 96;
    if (Compared.size() <= MaxCompared)
      for (const Comparison &C : Compared) addInteger(*C.Constant, *C.Where->getOperand(C.OtherSide), "int", *C.Where);
    Compared.clear();
  }

  // Big-endian, then little-endian.
  void addInteger(const ConstantInt &Constant, const Value &Other, const char *Kind, const Instruction &I) {
    int64_t N = numberOf(Constant);
    unsigned Size = bytesOf(N, &Other);
    std::string Bytes;
    for (unsigned Byte = Size; Byte--;) Bytes += (char)((uint64_t)N >> 8 * Byte);
    auto PlaceOf = [&] { return Places.of(I); };
    Words.add(Bytes, Kind, PlaceOf);
    std::reverse(Bytes.begin(), Bytes.end());
    Words.add(Bytes, Kind, PlaceOf);
  }

  void addArgument(const CallBase &Call, unsigned Index, StringRef Bytes) {
    std::string Name = plainName(Call);
    bool IsNamed = isComparisonName(Name) || takesKey(Call, Index, Name);
    if (!IsNamed && (isOutputName(Name) || !isComparisonShape(Call))) return;
    auto PlaceOf = [&] { return Places.of(Call); };
    StringRef Text = untilNul(Bytes);
    uint64_t Length = lengthOf(Call, Index);
    bool IsWhole = Length + 1 >= Bytes.size() && Text.size() < Length && !isOnlyNul(Bytes.drop_front(Text.size()));
    if (Length && Length <= Bytes.size() && (hasLength(Name) || IsWhole)) {
      bool EndsAtNul = hasAny(Name, {"str"});
      StringRef Word = EndsAtNul ? Text.take_front(Length) : Bytes.take_front(Length);
      if (isBinaryWord(Word)) Words.add(Word, "string", PlaceOf);
    } else if (isWord(Text) && Text.size() < Bytes.size()) {
      Words.add(Text, "string", PlaceOf);
    }
  }

  static bool isOnlyNul(StringRef Bytes) { return Bytes.find_first_not_of('\0') == StringRef::npos; }

  // The number behind the string, with at most one other argument in between; 0 if there is none.
  static uint64_t lengthOf(const CallBase &Call, unsigned Index) {
    for (unsigned I = Index + 1; I < Call.arg_size() && I < Index + 3; I++)
      if (Call.getArgOperand(I)->getType()->isIntegerTy()) {
        auto *Length = dyn_cast<ConstantInt>(Call.getArgOperand(I));
        return Length ? Length->getLimitedValue(1024) : 0;
      }
    return 0;
  }

  // Tables without `const` count if only this module can change them.
  void visitGlobal(const GlobalVariable &G) {
    if (!G.hasInitializer() || !(G.isConstant() || G.hasLocalLinkage())) return;
    if (G.hasSection() || fuzzfactory::startsWith(G.getName(), "_ZT") || fuzzfactory::startsWith(G.getName(), "llvm."))
      return;
    visitTable(G, G.getInitializer(), 3);
  }

  void visitTable(const GlobalVariable &G, const Constant *C, unsigned Depth) {
    auto Add = [&](StringRef Word) { Words.add(Word, "table", [&] { return Places.of(G); }); };
    if (auto *Bytes = dyn_cast<ConstantDataSequential>(C)) {
      if (Bytes->getElementType()->isIntegerTy(8) && isPackedTable(Bytes->getRawDataValues()))
        for (StringRef Rest = Bytes->getRawDataValues(); !Rest.empty();) {
          StringRef Name = untilNul(Rest);
          if (isTableWord(Name)) Add(Name);
          Rest = Rest.drop_front(std::min(Rest.size(), Name.size() + 1));
        }
      return;
    }
    if (!isa<ConstantArray>(C) && !isa<ConstantStruct>(C)) return;
    // With unions or padding an array is a struct of structs.
    bool IsArray = isa<ConstantArray>(C) || isa<ConstantStruct>(C->getOperand(0));
    if (IsArray && C->getNumOperands() >= 3) {
      Columns Table(DL);
      for (const Use &Element : C->operands()) Table.addRow(cast<Constant>(Element));
      Table.forEachWord(3, Add);
    } else if (Depth) {
      for (const Use &Field : C->operands()) visitTable(G, cast<Constant>(Field), Depth - 1);
    }
  }
};

struct WordsPass : PassInfoMixin<WordsPass> {
  static bool isRequired() { return true; }

  PreservedAnalyses run(Module &M, ModuleAnalysisManager &) {
    Collector(M).run();
    return PreservedAnalyses::all();
  }
};

} // namespace

static void addWords(PassBuilder &PB) {
  PB.registerPipelineStartEPCallback([](ModulePassManager &MPM, auto) { MPM.addPass(WordsPass()); });
}

#endif
