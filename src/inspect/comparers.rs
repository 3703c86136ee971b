//! Functions that compare, by name.

/// `enum ffuzz_comparer`.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Operands {
    Memory,
    Text,
    TextOfLength,
    Search,
    SearchInLength,
    SearchOfLengths,
    StringText,
    Strings,
}

/// Method by which a function compares.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Comparer {
    pub(crate) form: Operands,
    pub(crate) ignores_case: bool,
}

/// The functions of `llvm-passes/ffuzz-log.hpp`.
const NAMES: [(Operands, &[&str]); 8] = [
    (
        Operands::Memory,
        &[
            "memcmp",
            "bcmp",
            "__memcmpeq",
            "CRYPTO_memcmp",
            "OPENSSL_memcmp",
            "memcmp_const_time",
            "memcmpct",
            "timingsafe_memcmp",
            "timingsafe_bcmp",
            "consttime_memequal",
        ],
    ),
    (
        Operands::Text,
        &[
            "strcmp",
            "xmlStrcmp",
            "xmlStrEqual",
            "g_strcmp0",
            "g_str_equal",
            "curl_strequal",
            "strcsequal",
            "strcasecmp",
            "stricmp",
            "_stricmp",
            "ap_cstr_casecmp",
            "OPENSSL_strcasecmp",
            "xmlStrcasecmp",
            "g_strcasecmp",
            "g_ascii_strcasecmp",
            "Curl_strcasecompare",
            "Curl_safe_strcasecompare",
            "cmsstrcasecmp",
            "sqlite3_stricmp",
            "sqlite3StrICmp",
            "strcasecmp_l",
            "apr_cstr_casecmp",
            "g_str_has_prefix",
            "g_str_has_suffix",
        ],
    ),
    (
        Operands::TextOfLength,
        &[
            "strncmp",
            "strncasecmp",
            "strnicmp",
            "_strnicmp",
            "ap_cstr_casecmpn",
            "OPENSSL_strncasecmp",
            "xmlStrncmp",
            "xmlStrncasecmp",
            "g_ascii_strncasecmp",
            "g_strncasecmp",
            "Curl_strncasecompare",
            "curl_strnequal",
            "sqlite3_strnicmp",
            "apr_cstr_casecmpn",
            "strnstr",
        ],
    ),
    (Operands::Search, &["strstr", "strcasestr", "xmlStrstr", "xmlStrcasestr", "ap_strcasestr"]),
    (Operands::SearchInLength, &["g_strstr_len"]),
    (Operands::SearchOfLengths, &["memmem"]),
    (Operands::StringText, &["_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareEPKc"]),
    (Operands::Strings, &["_ZNKSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE7compareERKS4_"]),
];

impl Comparer {
    pub(crate) fn of(name: &str) -> Option<Self> {
        let form = NAMES.iter().find(|(_, names)| names.contains(&name))?.0;
        let lower = name.to_ascii_lowercase();
        let marks = ["case", "icmp", "curl_str", "strcsequal"];
        Some(Self { form, ignores_case: marks.iter().any(|mark| lower.contains(mark)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_are_those_of_the_pass() {
        let pass = include_str!("../../llvm-passes/ffuzz-log.hpp");
        let list = pass.split("StringSwitch<Comparer>(Name)").nth(1).unwrap();
        let list = list.split(".Default(").next().unwrap();
        for name in list.split('"').skip(1).step_by(2) {
            assert!(Comparer::of(name).is_some(), "{name}");
        }
        let of = |name| Comparer::of(name).unwrap();
        assert_eq!((of("strcasecmp").ignores_case, of("memcmp").ignores_case), (true, false));
        assert_eq!(
            of("sqlite3_strnicmp"),
            Comparer { form: Operands::TextOfLength, ignores_case: true }
        );
        assert_eq!(Comparer::of("strlen"), None);
    }
}
