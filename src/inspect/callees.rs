//! Calls of functions known by name: functions of the file itself, and those of other files called through linker
//! stubs or through slots that the loader fills.

use std::collections::HashMap;

use iced_x86::{Instruction, Mnemonic};
use object::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, RelocationTarget};

use crate::lines::decoder;

/// Known functions, each with a `T`, and the ways in which a file calls them.
pub(crate) struct Callees<'a, T> {
    /// By slot: the place where the loader stores the function's address.
    slots: HashMap<u64, T>,
    /// By the place where the loader stores the address of a slot, which is a variable that holds a function.
    variables: HashMap<u64, T>,
    /// Functions of the file itself, by address.
    own: HashMap<u64, T>,
    /// Code of the linker's stubs, with their addresses.
    stubs: Vec<(u64, &'a [u8])>,
}

/// One call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Call<T> {
    pub(crate) callee: T,
    /// The callee's address, or that of its slot.
    pub(crate) target: u64,
    pub(crate) is_slot: bool,
}

impl<'a, T: Copy> Callees<'a, T> {
    /// `named` returns the `T` of a function name, if it is one of the known functions.
    pub(crate) fn of(file: &object::File<'a>, named: impl Fn(&str) -> Option<T>) -> Self {
        let defined = |symbol: object::Symbol<'_, '_>| {
            let known = named(symbol.name().ok()?)?;
            (symbol.address() != 0).then_some((symbol.address(), known))
        };
        let own: HashMap<u64, T> =
            file.dynamic_symbols().chain(file.symbols()).filter_map(defined).collect();
        let table = file.dynamic_symbol_table();
        let mut slots = HashMap::new();
        for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let known = match relocation.target() {
                RelocationTarget::Symbol(index) => {
                    let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
                    symbol.as_ref().and_then(|symbol| symbol.name().ok()).and_then(&named)
                }
                _ => own.get(&relocation.addend().cast_unsigned()).copied(),
            };
            slots.extend(known.map(|known| (place, known)));
        }
        let mut variables = HashMap::new();
        for (place, relocation) in file.dynamic_relocations().into_iter().flatten() {
            let RelocationTarget::Symbol(index) = relocation.target() else { continue };
            let symbol = table.as_ref().and_then(|table| table.symbol_by_index(index).ok());
            let held = symbol.and_then(|symbol| slots.get(&symbol.address()).copied());
            variables.extend(held.map(|known| (place, known)));
        }
        let is_stub = |section: &object::Section<'a, '_>| {
            section.name().is_ok_and(|name| name.starts_with(".plt"))
        };
        let stubs = file.sections().filter(is_stub);
        let stubs = stubs.filter_map(|section| Some((section.address(), section.data().ok()?)));
        Self { slots, variables, own, stubs: stubs.collect() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.own.is_empty() && self.slots.is_empty()
    }

    /// The function whose address is stored at `place`.
    pub(crate) fn in_slot(&self, place: u64) -> Option<T> {
        self.slots.get(&place).copied()
    }

    /// The function that the variable at `place`'s address holds.
    pub(crate) fn in_variable(&self, place: u64) -> Option<T> {
        self.variables.get(&place).copied()
    }

    /// The call that this instruction, a call or a jump, makes to a known function.
    pub(crate) fn called(&self, instruction: &Instruction) -> Option<Call<T>> {
        if instruction.is_ip_rel_memory_operand() {
            let target = instruction.ip_rel_memory_address();
            return Some(Call { callee: *self.slots.get(&target)?, target, is_slot: true });
        }
        let is_near = instruction.is_call_near() || instruction.is_jmp_short_or_near();
        let target = is_near.then(|| instruction.near_branch_target())?;
        let callee = self.own.get(&target).copied().or_else(|| self.through_stub(target))?;
        Some(Call { callee, target, is_slot: false })
    }

    /// The function of a stub, which jumps to the address in a slot.
    fn through_stub(&self, address: u64) -> Option<T> {
        let code = self.stubs.iter().find_map(|(start, code)| {
            code.get(usize::try_from(address.checked_sub(*start)?).ok()?..)
        })?;
        let mut decoder = decoder(code, address);
        let first = decoder.decode();
        let jump = if first.mnemonic() == Mnemonic::Endbr64 { decoder.decode() } else { first };
        let is_jump = jump.mnemonic() == Mnemonic::Jmp && jump.is_ip_rel_memory_operand();
        is_jump.then(|| self.slots.get(&jump.ip_rel_memory_address()).copied())?
    }
}
