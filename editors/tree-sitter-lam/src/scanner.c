// The margin of a `.lam` file: a line that is not indented more than the first one begins a new item, unless
// its first token continues the term above. Inside brackets the parser never asks for the end of an item.

#include "tree_sitter/alloc.h"
#include "tree_sitter/parser.h"

enum Token { START, MARGIN, ERROR };

typedef struct {
  // Column of the first token of the file.
  uint32_t margin;
} Scanner;

void *tree_sitter_lam_external_scanner_create(void) {
  Scanner *scanner = ts_malloc(sizeof(Scanner));
  scanner->margin = 0;
  return scanner;
}

void tree_sitter_lam_external_scanner_destroy(void *payload) { ts_free(payload); }

unsigned tree_sitter_lam_external_scanner_serialize(void *payload, char *buffer) {
  uint32_t margin = ((Scanner *)payload)->margin;
  for (unsigned i = 0; i < 4; i++) buffer[i] = (char)(margin >> (8 * i));
  return 4;
}

void tree_sitter_lam_external_scanner_deserialize(void *payload, const char *buffer, unsigned length) {
  uint32_t margin = 0;
  for (unsigned i = 0; i < 4 && i < length; i++) margin |= (uint32_t)(unsigned char)buffer[i] << (8 * i);
  ((Scanner *)payload)->margin = margin;
}

// Passes white space and comments. Returns true if a line began meanwhile.
static bool skip_blank(TSLexer *lexer) {
  bool is_fresh = false;
  for (;;) {
    int32_t c = lexer->lookahead;
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      is_fresh |= c == '\n';
      lexer->advance(lexer, true);
    } else if (c == '#') {
      while (!lexer->eof(lexer) && lexer->lookahead != '\n') lexer->advance(lexer, true);
    } else {
      return is_fresh;
    }
  }
}

static bool is_word(int32_t c) { return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c > 127; }

// Whether the next token continues a term: an infix operator, a closing bracket, or a word such as `then`.
static bool continues(TSLexer *lexer) {
  int32_t c = lexer->lookahead;
  switch (c) {
    case '>': case '|': case '=': case '<': case '&': case '+': case '-': case '*': case '/': case '%': case ':':
    case '?': case '.': case ',': case ';': case ')': case ']': case '}':
    case 0x226B: /* ≫ */ case 0x2295: /* ⊕ */ case 0x2260: /* ≠ */ case 0x2264: /* ≤ */ case 0x2265: /* ≥ */
    case 0x2227: /* ∧ */ case 0x2228: /* ∨ */ case 0xD7: /* × */ case 0x2192: /* → */ case 0x21D2: /* ⇒ */
    case 0x27E9: /* ⟩ */
      return true;
    case '!':
      lexer->advance(lexer, false);
      return lexer->lookahead == '=';
    default:
      break;
  }
  if (!(c >= 'a' && c <= 'z')) return false;
  char word[6];
  unsigned length = 0;
  while (is_word(lexer->lookahead) || (lexer->lookahead >= '0' && lexer->lookahead <= '9')) {
    if (length == sizeof(word)) return false;
    word[length++] = lexer->lookahead > 127 ? '?' : (char)lexer->lookahead;
    lexer->advance(lexer, false);
  }
  static const char *const WORDS[] = {"in", "then", "else", "of", "catch"};
  for (unsigned i = 0; i < sizeof(WORDS) / sizeof(*WORDS); i++) {
    unsigned n = 0;
    while (n < length && WORDS[i][n] == word[n]) n++;
    if (n == length && WORDS[i][n] == '\0') return true;
  }
  return false;
}

bool tree_sitter_lam_external_scanner_scan(void *payload, TSLexer *lexer, const bool *valid) {
  Scanner *scanner = payload;
  // All are valid while the parser recovers from an error.
  if (valid[ERROR]) return false;
  lexer->mark_end(lexer);
  if (valid[START]) {
    skip_blank(lexer);
    scanner->margin = lexer->get_column(lexer);
    lexer->result_symbol = START;
    return true;
  }
  if (!valid[MARGIN]) return false;
  bool is_fresh = skip_blank(lexer);
  lexer->result_symbol = MARGIN;
  if (lexer->eof(lexer)) return true;
  return is_fresh && lexer->get_column(lexer) <= scanner->margin && !continues(lexer);
}
