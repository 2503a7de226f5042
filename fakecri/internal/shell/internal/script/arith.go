package script

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Arith is the text of an expression, or a word that expands to it. Word is set if there is
// something to expand, and Text otherwise.
type Arith struct {
	Text string
	Word *syntax.Word
}

// Arith returns the text of an expansion of a cached script. Those that texts left out are
// printed from the tree, once.
func (c *Cache) Arith(x *syntax.ArithmExp) *Arith {
	t := c.arith[x]
	if t == nil {
		t = PrintArith(x.X)
		c.keepArith(x, t)
	}
	return t
}

// PrintArith takes an expression back to text: POSIX has it expanded first
// and read after that, so that $a may hold an operator's operands. "?" is no expression, so what
// can't be printed fails when it is evaluated.
func PrintArith(x syntax.ArithmExpr) *Arith {
	var b strings.Builder
	word := &syntax.Word{Parts: []syntax.WordPart{&syntax.ArithmExp{X: x}}}
	if err := syntax.NewPrinter().Print(&b, word); err != nil {
		return &Arith{Text: "?"}
	}
	return newArith(strings.TrimSuffix(strings.TrimPrefix(b.String(), "$(("), "))"))
}

// newArith makes an Arith of an expression's text, parsed if it has something to expand.
func newArith(t string) *Arith {
	if !strings.ContainsAny(t, "$`\\") {
		return &Arith{Text: t}
	}
	w, err := Document(t)
	if err != nil || w == nil {
		return &Arith{Text: t}
	}
	return &Arith{Word: w}
}

// keepArith remembers an expression's text for as long as the scripts are kept.
func (c *Cache) keepArith(x *syntax.ArithmExp, t *Arith) {
	if c.arith == nil {
		c.arith = make(map[*syntax.ArithmExp]*Arith)
	}
	c.arith[x] = t
}

// texts remembers the texts of arithmetic expansions. In back quotes, where
// backslashes come and go, they are printed anew when they are needed. There the offsets of the
// tree don't fit the text, which the comparison with "$((" notices as well.
func (p *Program) texts(src string) {
	for _, st := range p.Stmts {
		syntax.Walk(st, func(n syntax.Node) bool {
			if x, ok := n.(*syntax.ArithmExp); ok {
				from, to := int(x.Left.Offset())+3, int(x.Right.Offset())
				if from <= to && to <= len(src) && src[from-3:from] == "$((" && !strings.Contains(src[from:to], `\`) {
					p.ariths = append(p.ariths, x)
					p.arithTexts = append(p.arithTexts, newArith(src[from:to]))
				}
			}
			return true
		})
	}
}

// blankArith puts 0 and spaces in place of what stands in $((...)), so that
// positions stay what they are. Newlines stay as well, so lines keep their numbers. It does not
// parse: quotes are judged by counting, which is enough, as the result only counts if it parses.
func blankArith(src string) string {
	b := []byte(src)
	for i := 0; i+2 < len(src); i++ {
		switch src[i] {
		case '\\':
			i++
		case '\'':
			// An odd number of double quotes before it means that the single quote is within
			// them.
			if n := strings.IndexByte(src[i+1:], '\''); n >= 0 && strings.Count(src[:i], `"`)%2 == 0 {
				i += n + 1
			}
		case '$':
			if src[i:i+3] != "$((" {
				continue
			}
			end := arithEnd(src, i+3)
			if end <= i+3 {
				continue
			}
			for j := i + 3; j < end; j++ {
				if b[j] != '\n' {
					b[j] = ' '
				}
			}
			if b[i+3] != '\n' {
				b[i+3] = '0'
			}
			i = end
		}
	}
	return string(b)
}

// arithEnd finds the )) that ends an expression, -1 if there is none. i is the place behind
// "$((", and the result that of the first of the two brackets.
func arithEnd(src string, i int) int {
	depth := 0
	for ; i < len(src); i++ {
		switch src[i] {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				if i+1 < len(src) && src[i+1] == ')' {
					return i
				}
				return -1
			}
			depth--
		}
	}
	return -1
}
