//! Cobertura's XML (coverage-04.dtd), which GitLab, Jenkins and others show beside a change.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesText, Event};

use super::percent;
use crate::data::{Source, SourceFile, SourceTotals};

/// Writes the XML, with paths relative to the common folder. `seconds`: Unix time of the report.
#[must_use]
pub fn cobertura(source: &Source, seconds: u64) -> String {
    let mut out = Writer::new_with_indent(Vec::new(), b' ', 1);
    // Writing to memory does not fail.
    let _ = write(&mut out, source, seconds);
    String::from_utf8_lossy(&out.into_inner()).into_owned() + "\n"
}

type Out = Writer<Vec<u8>>;

fn write(out: &mut Out, source: &Source, seconds: u64) -> io::Result<()> {
    let root = shared_folder(&source.files);
    let mut packages: BTreeMap<String, Vec<(&SourceFile, String)>> = BTreeMap::new();
    for file in &source.files {
        let name = Path::new(&file.path).strip_prefix(&root).unwrap_or(Path::new(&file.path));
        let folder = name.parent().unwrap_or(Path::new("")).to_string_lossy().into_owned();
        packages.entry(folder).or_default().push((file, name.to_string_lossy().into_owned()));
    }
    out.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let totals = &source.totals;
    let attributes = [
        ("line-rate", rate(totals)),
        ("branch-rate", "0".into()),
        ("lines-covered", totals.reached.to_string()),
        ("lines-valid", totals.lines.to_string()),
        ("branches-covered", "0".into()),
        ("branches-valid", "0".into()),
        ("complexity", "0".into()),
        ("version", format!("ffuzz {}", env!("CARGO_PKG_VERSION"))),
        ("timestamp", seconds.to_string()),
    ];
    element(out, "coverage", &attributes).write_inner_content(|out| {
        element(out, "sources", &[]).write_inner_content(|out| {
            let root = root.to_string_lossy();
            element(out, "source", &[]).write_text_content(BytesText::new(&root)).map(drop)
        })?;
        element(out, "packages", &[]).write_inner_content(|out| {
            packages.iter().try_for_each(|(name, files)| package(out, name, files))
        })?;
        Ok(())
    })?;
    Ok(())
}

fn element<'a>(
    out: &'a mut Out,
    name: &'static str,
    attributes: &[(&str, String)],
) -> quick_xml::writer::ElementWriter<'a, Vec<u8>> {
    let pairs = attributes.iter().map(|(name, value)| (*name, value.as_str()));
    out.create_element(name).with_attributes(pairs)
}

fn package(out: &mut Out, name: &str, files: &[(&SourceFile, String)]) -> io::Result<()> {
    let mut totals = SourceTotals::default();
    files.iter().for_each(|(file, _)| totals.add(&file.totals));
    let name = if name.is_empty() { "." } else { name };
    element(out, "package", &rates(name, None, &totals)).write_inner_content(|out| {
        element(out, "classes", &[]).write_inner_content(|out| {
            files.iter().try_for_each(|(file, name)| class(out, file, name))
        })?;
        Ok(())
    })?;
    Ok(())
}

fn class(out: &mut Out, file: &SourceFile, name: &str) -> io::Result<()> {
    let short = Path::new(name).file_name().unwrap_or_default().to_string_lossy();
    let attributes = rates(&short, Some(name), &file.totals);
    element(out, "class", &attributes).write_inner_content(|out| {
        // Methods stay empty, because lines are listed by file.
        element(out, "methods", &[]).write_empty()?;
        element(out, "lines", &[]).write_inner_content(|out| {
            for (line, run) in file.each_line() {
                let attributes = [("number", line.to_string()), ("hits", run.inputs.to_string())];
                element(out, "line", &attributes).write_empty()?;
            }
            Ok(())
        })?;
        Ok(())
    })?;
    Ok(())
}

fn rates(name: &str, file: Option<&str>, totals: &SourceTotals) -> Vec<(&'static str, String)> {
    let mut attributes = vec![("name", name.to_owned())];
    attributes.extend(file.map(|file| ("filename", file.to_owned())));
    attributes.extend([
        ("line-rate", rate(totals)),
        ("branch-rate", "0".into()),
        ("complexity", "0".into()),
    ]);
    attributes
}

fn rate(totals: &SourceTotals) -> String {
    format!("{:.4}", percent(totals.reached, totals.lines) / 100.0)
}

/// The longest folder that contains all files.
fn shared_folder(files: &[SourceFile]) -> PathBuf {
    let mut folders = files.iter().filter_map(|file| Path::new(&file.path).parent());
    let first = folders.next().unwrap_or(Path::new("")).to_owned();
    folders.fold(first, |mut shared, folder| {
        while !folder.starts_with(&shared) && shared.pop() {}
        shared
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forms::tests::example;

    #[test]
    fn files_are_named_from_their_shared_folder() {
        let text = cobertura(&example(), 77);
        let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<coverage line-rate="0.5000" branch-rate="0" lines-covered="2" lines-valid="4" branches-covered="0" branches-valid="0" complexity="0" version="ffuzz 0.1.0" timestamp="77">
 <sources>
  <source>/src</source>
 </sources>
 <packages>
  <package name="." line-rate="0.0000" branch-rate="0" complexity="0">
   <classes>
    <class name="main.c" filename="main.c" line-rate="0.0000" branch-rate="0" complexity="0">
     <methods/>
     <lines>
      <line number="9" hits="0"/>
     </lines>
    </class>
   </classes>
  </package>
  <package name="lib" line-rate="0.6667" branch-rate="0" complexity="0">
   <classes>
    <class name="a.c" filename="lib/a.c" line-rate="0.6667" branch-rate="0" complexity="0">
     <methods/>
     <lines>
      <line number="2" hits="5"/>
      <line number="3" hits="4"/>
      <line number="5" hits="0"/>
     </lines>
    </class>
   </classes>
  </package>
 </packages>
</coverage>
"#;
        assert_eq!(text, expected);
    }

    #[test]
    fn names_hold_no_markup() {
        let mut source = example();
        source.files[0].path = "/src/lib/\"><b>.c".into();
        let text = cobertura(&source, 0);
        assert!(text.contains("lib/&quot;&gt;&lt;b&gt;.c") && !text.contains("<b>"), "{text}");
    }
}
