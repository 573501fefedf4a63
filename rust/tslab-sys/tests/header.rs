//! The declarations of this crate are those of `include/tslab.h`: names, types, order.

use std::collections::BTreeMap;

const HEADER: &str = include_str!(concat!(env!("TSLAB_INCLUDE"), "/tslab.h"));
const RUST: &str = include_str!("../src/lib.rs");

/// What stands between each `begin` and the next `end`.
fn between<'a>(text: &'a str, begin: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(begin).skip(1).map(move |rest| rest.split(end).next().unwrap_or(rest))
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |code, rest| code + rest.split_once("*/").map_or("", |(_, code)| code))
}

fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace(" *", "*").replace("( ", "(")
}

/// A type of C's as this crate writes it.
fn rust_type(c: &str) -> String {
    let c = squeezed(c);
    let c = c.trim_start_matches("enum ");
    if let Some(target) = c.strip_suffix('*') {
        let (target, kind) = match target.strip_prefix("const ") {
            Some(target) => (target, "const"),
            None => (target, "mut"),
        };
        if target == "tslab_limit_callback" {
            return "Option<tslab_limit_callback>".to_owned();
        }
        return format!("*{kind} {}", rust_type(target));
    }
    match c {
        "void" => "c_void",
        "char" => "c_char",
        "int" => "c_int",
        "unsigned" => "c_uint",
        "size_t" => "usize",
        "uint64_t" => "u64",
        other => other,
    }
    .to_owned()
}

/// `const char *label` as `("label", "*const c_char")`, `void (*run)(void *)` likewise.
fn parameter(c: &str) -> (String, String) {
    if let Some((result, rest)) = c.split_once("(*") {
        let (name, types) = rest.split_once(")(").expect("a pointer to a function");
        let types: Vec<_> = types.trim_end_matches(')').split(',').map(unnamed).collect();
        let result = match result.trim() {
            "void" => String::new(),
            other => format!(" -> {}", rust_type(other)),
        };
        return (name.to_owned(), format!("unsafe extern \"C\" fn({}){result}", types.join(", ")));
    }
    let end = c.rfind([' ', '*']).expect("a type and a name");
    (c[end + 1..].to_owned(), rust_type(&c[..=end]))
}

/// The type of a parameter that has a name, or has none.
fn unnamed(c: &str) -> String {
    let c = squeezed(c);
    let is_named = !c.ends_with('*') && c.contains([' ', '*']);
    if is_named { parameter(&c).1 } else { rust_type(&c) }
}

/// Splits at the commas that stand in no parentheses.
fn arguments(list: &str) -> Vec<String> {
    let mut depth = 0;
    let parts = list.split(|letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        letter == ',' && depth == 0
    });
    parts
        .map(|part| part.trim().to_owned())
        .filter(|part| part != "void" && !part.is_empty())
        .collect()
}

fn without_blanks(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_whitespace()).collect()
}

/// From name to `(name:type,...)->type`.
fn functions_of_c() -> BTreeMap<String, String> {
    let code = without_comments(HEADER);
    let mut found = BTreeMap::new();
    for text in between(&code, "TSLAB_API ", ";").filter(|text| text.contains("tslab_")) {
        let text = squeezed(text);
        let (head, rest) = text.split_once('(').expect("a function");
        let end = closing(rest);
        let (name, result) = parameter(head);
        let parameters = arguments(&rest[..end]);
        let parameters: Vec<_> = parameters.iter().map(|each| parameter(each)).collect();
        let shown: Vec<_> =
            parameters.iter().map(|(name, kind)| format!("{name}: {kind}")).collect();
        let result = if result == "c_void" { String::new() } else { format!(" -> {result}") };
        found.insert(name, without_blanks(&format!("({}){result}", shown.join(","))));
    }
    found
}

/// Where the parenthesis that is open before `text` is closed.
fn closing(text: &str) -> usize {
    let mut depth = 1;
    let is_end = |letter| {
        depth += i32::from(letter == '(') - i32::from(letter == ')');
        depth == 0
    };
    text.find(is_end).expect("a closing parenthesis")
}

fn functions_of_rust() -> BTreeMap<String, String> {
    let external = between(RUST, "unsafe extern \"C\" {", "\n}").next().expect("the declarations");
    let each = between(external, "pub fn ", ";").map(|text| {
        let (name, rest) = text.split_once('(').expect("a function");
        (name.to_owned(), format!("({}", without_blanks(rest).replace(",)", ")")))
    });
    each.collect()
}

/// From name to the fields in their order.
fn structs_of_c() -> BTreeMap<String, Vec<String>> {
    let code = without_comments(HEADER);
    let mut found = BTreeMap::new();
    for text in between(&code, "typedef struct ", "} ") {
        let (name, fields) = text.split_once('{').expect("a struct");
        let fields = fields.split(';').map(squeezed).filter(|field| !field.is_empty());
        let shown = fields.map(|field| {
            let (name, kind) = parameter(&field);
            format!("{name}: {kind}")
        });
        found.insert(name.trim().to_owned(), shown.collect());
    }
    found
}

fn structs_of_rust() -> BTreeMap<String, Vec<String>> {
    let each = between(RUST, "pub struct ", "\n}").map(|text| {
        let (name, fields) = text.split_once(" {").expect("a struct");
        let fields = between(fields, "pub ", ",\n");
        (name.to_owned(), fields.map(|field| field.trim_end_matches(',').to_owned()).collect())
    });
    each.collect()
}

/// From name to number.
fn enums_of_c() -> BTreeMap<String, usize> {
    let code = without_comments(HEADER);
    let heads = between(&code, "enum ", "}").filter_map(|text| text.split_once(" {"));
    let lists = heads.filter(|(name, _)| !name.contains(' ')).map(|(_, list)| list);
    let numbered = lists.flat_map(|list| list.split(',').map(squeezed).enumerate());
    numbered.map(|(number, name)| (name, number)).collect()
}

#[test]
fn functions_are_those_of_the_header() {
    let (c, rust) = (functions_of_c(), functions_of_rust());
    assert!(c.len() > 40, "the header's form has changed: {c:?}");
    assert_eq!(c, rust);
}

#[test]
fn structs_are_those_of_the_header() {
    let (c, rust) = (structs_of_c(), structs_of_rust());
    assert!(c.len() > 7, "the header's form has changed: {c:?}");
    assert_eq!(c, rust);
}

#[test]
fn numbers_are_those_of_the_header() {
    let c = enums_of_c();
    assert!(c.len() > 9, "the header's form has changed: {c:?}");
    for (name, number) in c {
        let declared = between(RUST, &format!("pub const {name}: "), ";").next().map(str::to_owned);
        let value = declared.and_then(|text| Some(text.split_once(" = ")?.1.to_owned()));
        assert_eq!(value, Some(number.to_string()), "{name}");
    }
}
