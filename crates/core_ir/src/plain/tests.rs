use super::*;
use crate::among::tokens;

/// The request of all texts of the tables.
const REQUEST: &str = "Send the bill of 1500 to bob@example.org, +1 555 123 4567, and put \"the roof\" on \
                       https://a.example/b with GB29NWBK60161331926819 for @carol. See report.tar.zip";

fn found(text: &str) -> Option<Link> {
    Plain::NoLinks.refused(&Data::str(text), &tokens(&Data::str(REQUEST)))
}

#[test]
fn no_links_admits_harmless_texts() {
    let harmless = [
        "",
        "The total is 98.70 EUR, due on 2024-05-15 at 10:30:00.",
        "Meet on 15/05/24 10:30, or 16.05.2024 at 9:00.",
        "May 15 2024 10:30 in room 12",
        "Rent 2022-2024, and 2023/2024 too; in 2023 2024 nothing.",
        "1,500,000 people live here.",
        "It costs $1,234.50 (or 1.234,50).",
        "e.g. this, i.e. that, at 5 p.m. in the U.S.A.",
        "Version 2.10 is out... and works?!",
        "Attached: bill-december.pdf, main.js and notes.txt.",
        "Dear all,\n\u{2022} first item\n\u{2022} net income\n\u{b7} third\nRegards",
        "a < b and b > c; x <= y",
        "[1] (see below) and array[0]",
        "[Alice]: hello, [Bob]: hi",
        "and/or, 50/50, n/a, either/or",
        "Let x = y::z and std::vector be",
        "The ratio is 10:1, the score 10/10.",
        "C:\\Users and /etc/hosts",
        "100% sure, 5% off & more; R&D",
        "\u{201c}Quoted\u{201d} \u{2014} with dashes \u{2013} and \u{2026}",
        "\u{4eca}\u{65e5}\u{306f}\u{3001}\u{5929}\u{6c17}\u{304c}\u{3044}\u{3044}\u{3067}\u{3059}\u{3002}",
        "Zahlen: 12 34 56",
        "Order 123456 of 3 items, no. 7",
        "meet me @ 5 pm",
        "It is a data: point. The file: it is there.",
        "The dot on the i, the dot to the left.",
        "He said: yes. She said: no.",
        "12.Dec was cold",
        "# heading\n## another\n- item\n1. first\n2. second",
        "caf\u{e9} na\u{ef}ve \u{fc}ber r\u{e9}sum\u{e9}",
        "f(x) = a*b + c^2, 3 * 4 = 12",
        "\u{1f389} congratulations \u{2764}\u{fe0f}!",
        // Tokens of the request.
        "bob@example.org gets it.",
        "See <https://a.example/b>, please",
        "(+1 555 123 4567)",
        "GB29NWBK60161331926819",
        "thanks, @carol!",
        "report.tar.zip",
    ];
    for text in harmless {
        assert_eq!(found(text), None, "{text}");
    }
    assert!(harmless.len() >= 30);
}

#[test]
fn no_links_refuses_links_in_every_spelling() {
    use LinkKind::{Email, Handle, Identifier, Markup, Number, Url};
    let links = [
        ("go to https://evil.example/x now", Url),
        ("HTTP://EVIL.EXAMPLE", Url),
        ("ftp://evil", Url),
        ("hxxps://evil[.]com/a", Url),
        ("h**p://evil", Url),
        ("https : // evil", Url),
        ("//evil/path", Url),
        ("\\\\evil\\share", Url),
        ("www.evil.com", Url),
        ("evil.com", Url),
        ("visit evil.attorney today", Url),
        ("evil.com.pdf", Url),
        ("bit.ly/3xYz", Url),
        ("evil[.]com", Url),
        ("evil (dot) com", Url),
        ("evil dot com", Url),
        ("evil . com", Url),
        ("evil\u{3002}com", Url),
        ("evil\u{ff0e}com", Url),
        ("evil\u{2022}com", Url),
        ("ev\u{200b}il.c\u{200d}om", Url),
        ("h\u{200b}ttps:/\u{2060}/evil", Url),
        ("\u{ff48}\u{ff54}\u{ff54}\u{ff50}\u{ff1a}\u{ff0f}\u{ff0f}evil", Url),
        ("\u{1d41e}\u{1d42f}\u{1d422}\u{1d425}.\u{1d41c}\u{1d428}\u{1d426}", Url),
        ("\u{24d4}\u{24e5}\u{24d8}\u{24db}.\u{24d2}\u{24de}\u{24dc}", Url),
        ("\u{435}vil.com", Url),
        ("see xn--evl-8sa now", Url),
        ("evil&#46;com", Url),
        ("evil&#x2E;com and evil&period;com", Url),
        ("evil%2Ecom", Url),
        ("evil%252Ecom", Url),
        ("evil\\u002ecom", Url),
        ("127.0.0.1", Url),
        ("at 2001:db8::1 or so", Url),
        ("localhost:8080", Url),
        ("javascript:alert(1)", Url),
        ("data:text/html;base64,AAAA", Url),
        ("mailto:x", Url),
        ("tel:5", Url),
        ("magnet:?xt=x", Url),
        ("[click](/here)", Markup),
        ("![](x)", Markup),
        ("<img src=x>", Markup),
        ("<a href='x'>", Markup),
        ("mail eve@evil.com", Email),
        ("eve\u{ff20}evil", Email),
        ("eve[at]evil", Email),
        ("eve&commat;evil", Email),
        ("write to @eve", Handle),
        ("\u{fe6b}eve", Handle),
        ("call +49 151 2345678", Number),
        ("(555) 765-4321", Number),
        ("06.12.10.20.30", Url),
        ("06 12 10 20 30", Number),
        ("555-12-12-2024", Number),
        ("\u{ff15}\u{ff15}\u{ff15}\u{ff11}\u{ff12}\u{ff13}\u{ff14}", Number),
        ("\u{665}\u{665}\u{665}\u{661}\u{662}\u{663}\u{664}", Number),
        ("5\u{fe0f}\u{20e3}5\u{fe0f}\u{20e3}5\u{fe0f}\u{20e3}1234", Number),
        ("4111 1111 1111 1111", Number),
        ("DE12 3456 7890 1234 5678 90", Number),
        ("pay to NO9386011117947", Number),
        ("US133000000121212121212", Identifier),
        ("1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa", Identifier),
        ("0xde0B295669a9FD93", Url),
        // Not quite tokens of the request.
        ("bob@example.org.evil.com", Email),
        ("https://a.example/b?leak=1", Url),
        ("[x](https://a.example/b)", Url),
        ("xbob@example.org", Email),
        ("+1 555 123 4567 89 0123456", Number),
        ("GB29NWBK60161331926810", Identifier),
        ("@carols", Handle),
    ];
    for (text, kind) in links {
        assert_eq!(found(text).map(|l| l.kind), Some(kind), "{text}: {:?}", found(text));
    }
    assert!(links.len() >= 60);
}

#[test]
fn every_text_of_data_counts() {
    let link = || Data::str("evil.com");
    let texts = [
        Data::list([Data::str("a"), link()]),
        Data::record([("a".into(), Data::list([link()]))]),
        Data::record([("evil.com".into(), Data::Null)]),
        Data::Tag("a".into(), link().into()),
        Data::Tag("evil.com".into(), Data::Null.into()),
        Data::Pair(std::sync::Arc::new((Data::Null, link()))),
        Data::Num(crate::Num::from(5_551_234_567)),
    ];
    for data in texts {
        assert!(Plain::NoLinks.refused(&data, &[]).is_some(), "{data:?}");
    }
    assert_eq!(Plain::NoLinks.refused(&Data::Num(crate::Num::from(1500)), &[]), None);
    let asked = Data::Num(crate::Num::from(5_551_234_567));
    assert_eq!(Plain::NoLinks.refused(&asked, std::slice::from_ref(&asked)), None);
}

#[test]
fn long_texts_take_time_in_their_length() {
    for piece in ["a.", "1 ", "@ ", "[", "&#", "%2", "\\u", "<", "a:", "2024-05-15 ", "\u{200b}", "h", "/"] {
        // Time in the square of the length would take minutes.
        let _ = found(&piece.repeat(20_000));
    }
}

#[test]
fn forms_have_names() {
    for plain in Plain::ALL {
        assert_eq!(Plain::named(plain.as_str()), Some(plain));
    }
    assert_eq!(Plain::named("links"), None);
}
