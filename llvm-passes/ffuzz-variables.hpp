// Which variable a store writes to, by the names of the source: globals and locals ("total"), fields
// of structs ("header.length"), and elements of arrays under the name of the array. Locals and fields
// are known only with debug information (-g).
#ifndef FFUZZ_VARIABLES_HPP
#define FFUZZ_VARIABLES_HPP

#include "llvm/ADT/DenseMap.h"
#include "llvm/BinaryFormat/Dwarf.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Operator.h"

#include <map>
#include <string>

namespace fuzzfactory {

class Variables {
public:
  explicit Variables(llvm::Module &M) : Layout(M.getDataLayout()) { Types.processModule(M); }

  // Reads the locals of a function.
  void enter(llvm::Function &F) {
    Locals.clear();
    for (llvm::BasicBlock &B : F)
      for (llvm::Instruction &I : B) readDeclarations(I);
  }

  // "" if it has no name of its own, as `*p` has none.
  std::string nameOf(const llvm::StoreInst &Store) {
    const llvm::Value *Place = Store.getPointerOperand();
    for (;;) {
      if (auto *Cast = llvm::dyn_cast<llvm::BitCastOperator>(Place)) {
        Place = Cast->getOperand(0);
        continue;
      }
      auto *Element = llvm::dyn_cast<llvm::GEPOperator>(Place);
      if (!Element) break;
      llvm::Type *Whole = Element->getSourceElementType();
      if (auto *Struct = llvm::dyn_cast<llvm::StructType>(Whole)) return fieldAt(*Struct, *Element);
      if (!Whole->isArrayTy()) return "";
      Place = Element->getPointerOperand();
    }
    if (auto Local = Locals.find(Place); Local != Locals.end()) return Local->second;
    auto *Global = llvm::dyn_cast<llvm::GlobalVariable>(Place);
    if (!Global) return "";
    if (auto *Struct = llvm::dyn_cast<llvm::StructType>(Global->getValueType())) return fieldAt(*Struct, 0);
    return nameOfGlobal(*Global);
  }

private:
  const llvm::DataLayout &Layout;
  llvm::DebugInfoFinder Types;
  std::map<const llvm::Value *, std::string> Locals;

  // A local is declared, or (newer versions, optimising) each assignment to it is noted.
  void readDeclarations(llvm::Instruction &I) {
    if (auto *Declare = llvm::dyn_cast<llvm::DbgDeclareInst>(&I))
      declare(Declare->getAddress(), *Declare->getVariable());
#if LLVM_VERSION_MAJOR >= 17
    if (auto *Assign = llvm::dyn_cast<llvm::DbgAssignIntrinsic>(&I))
      declare(Assign->getAddress(), *Assign->getVariable());
#endif
#if LLVM_VERSION_MAJOR >= 19
    for (llvm::DbgVariableRecord &R : llvm::filterDbgVars(I.getDbgRecordRange()))
      if (R.isDbgDeclare() || R.isDbgAssign()) declare(R.getAddress(), *R.getVariable());
#endif
  }

  // The place of a parameter that came by reference is the caller's.
  void declare(const llvm::Value *Place, const llvm::DILocalVariable &Variable) {
    if (llvm::isa_and_nonnull<llvm::AllocaInst>(Place)) Locals[Place] = Variable.getName().str();
  }

  // The debug information has the name of the source, also for statics in functions.
  static std::string nameOfGlobal(const llvm::GlobalVariable &Global) {
    llvm::SmallVector<llvm::DIGlobalVariableExpression *, 1> Found;
    Global.getDebugInfo(Found);
    return (Found.empty() ? Global.getName() : Found[0]->getVariable()->getName()).str();
  }

  std::string fieldAt(llvm::StructType &Struct, const llvm::GEPOperator &Element) {
    llvm::SmallVector<llvm::Value *, 4> Indices(Element.idx_begin(), Element.idx_end());
    for (size_t I = 1; I < Indices.size(); I++)
      if (!llvm::isa<llvm::ConstantInt>(Indices[I])) return "";
    // Which element of an array of structs does not matter.
    Indices[0] = llvm::ConstantInt::get(Indices[0]->getType(), 0);
    return fieldAt(Struct, Layout.getIndexedOffsetInType(&Struct, Indices));
  }

  std::string fieldAt(llvm::StructType &Struct, uint64_t Bytes) {
    if (!Struct.hasName() || !Struct.isSized()) return "";
    // "struct.png_row_info", "class.ns::Header.12"
    llvm::StringRef Name = Struct.getName().split('.').second;
    auto [Front, Number] = Name.rsplit('.');
    if (!Number.empty() && Number.find_first_not_of("0123456789") == llvm::StringRef::npos) Name = Front;
    Name = Name.substr(Name.rfind(':') + 1);
    uint64_t Bits = Layout.getTypeAllocSizeInBits(&Struct);
    for (llvm::DIType *Type : Types.types()) {
      if (Type->getName().split('<').first != Name) continue;
      auto *Composite = llvm::dyn_cast_or_null<llvm::DICompositeType>(plain(Type));
      if (Composite && Composite->getSizeInBits() == Bits) return member(*Composite, Type->getName(), Bytes * 8);
    }
    return "";
  }

  // Without typedef, const and volatile.
  static llvm::DIType *plain(llvm::DIType *Type) {
    while (auto *Derived = llvm::dyn_cast_or_null<llvm::DIDerivedType>(Type)) {
      unsigned Tag = Derived->getTag();
      if (Tag != llvm::dwarf::DW_TAG_typedef && Tag != llvm::dwarf::DW_TAG_const_type &&
          Tag != llvm::dwarf::DW_TAG_volatile_type)
        break;
      Type = Derived->getBaseType();
    }
    return Type;
  }

  // The member that has this bit; inside of another struct, that one's.
  static std::string member(const llvm::DICompositeType &Struct, llvm::StringRef Name, uint64_t Bit) {
    for (llvm::DINode *Node : Struct.getElements()) {
      auto *Member = llvm::dyn_cast<llvm::DIDerivedType>(Node);
      if (!Member || Member->getTag() != llvm::dwarf::DW_TAG_member || Member->isStaticMember()) continue;
      uint64_t Start = Member->getOffsetInBits();
      if (Member->isBitField() || Bit < Start || Bit >= Start + Member->getSizeInBits()) continue;
      llvm::DIType *Type = plain(Member->getBaseType());
      auto *Inner = llvm::dyn_cast_or_null<llvm::DICompositeType>(Type);
      if (Inner && Inner->getTag() == llvm::dwarf::DW_TAG_structure_type) {
        llvm::StringRef InnerName = Inner->getName().empty() ? Member->getBaseType()->getName() : Inner->getName();
        return member(*Inner, InnerName, Bit - Start);
      }
      return (Name + "." + Member->getName()).str();
    }
    return "";
  }
};

} // namespace fuzzfactory

#endif
