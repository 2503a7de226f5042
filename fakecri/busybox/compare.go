package busybox

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"
)

func runCmp(c *call) int {
	o := c.getoptStatus(2, "sln:")
	if len(o.args) == 0 || len(o.args) > 2 {
		c.usage()
	}
	names := append(append([]string(nil), o.args...), "-")[:2]
	var data [2][]byte
	for i, name := range names {
		b, err := c.readAll(name)
		if err != nil {
			if !o.has('s') {
				c.errorf("%s: %s", name, strerror(err))
			}
			return 2
		}
		data[i] = b
	}
	line, code := 1, 0
	for i := 0; ; i++ {
		if i >= len(data[0]) || i >= len(data[1]) {
			if len(data[0]) != len(data[1]) {
				short := 0
				if len(data[1]) < len(data[0]) {
					short = 1
				}
				if !o.has('s') {
					c.errorf("EOF on %s", names[short])
				}
				return 1
			}
			return code
		}
		if data[0][i] != data[1][i] {
			code = 1
			switch {
			case o.has('s'):
				return 1
			case o.has('l'):
				c.printf("%d %3o %3o\n", i+1, data[0][i], data[1][i])
			default:
				c.printf("%s %s differ: char %d, line %d\n", names[0], names[1], i+1, line)
				return 1
			}
		}
		if data[0][i] == '\n' {
			line++
		}
	}
}

// differ is one run of diff.
type differ struct {
	c       *call
	o       *options
	context int
	code    int
}

func runDiff(c *call) int {
	o := c.getoptStatus(2, "abdiL:NqrsS:tTU:uwBx:", "text=a", "brief=q", "unified=U:", "ignore-case=i", "ignore-space-change=b", "ignore-all-space=w", "ignore-blank-lines=B",
		"recursive=r", "new-file=N", "report-identical-files=s", "label=L:", "minimal=d")
	if len(o.args) != 2 {
		c.usage()
	}
	d := &differ{c: c, o: o, context: 3}
	if o.has('U') {
		d.context = int(c.number(o.str('U')))
	}
	a, b := o.args[0], o.args[1]
	fa, fb := d.stat(a), d.stat(b)
	if d.code == 2 {
		return 2
	}
	if fa != nil && fb != nil && fa.IsDir() != fb.IsDir() {
		if fa.IsDir() {
			a = join(a, base(b))
		} else {
			b = join(b, base(a))
		}
		fa, _ = d.stat(a), d.stat(b)
		if d.code == 2 {
			return 2
		}
	}
	if fa != nil && fa.IsDir() {
		d.dirs(a, b)
	} else {
		d.files(a, b)
	}
	return d.code
}

func (d *differ) stat(name string) fs.FileInfo {
	if name == "-" {
		return nil
	}
	fi, err := d.c.view().Stat(name)
	if err != nil {
		d.c.errorf("can't stat '%s': %s", name, strerror(err))
		d.code = 2
		return nil
	}
	return fi
}

func (d *differ) dirs(a, b string) {
	v := d.c.view()
	seen := map[string]int{}
	var names []string
	for i, dir := range []string{a, b} {
		list, err := v.ReadDir(dir)
		if err != nil {
			d.c.errorf(cantOpen, dir, strerror(err))
			d.code = 2
			return
		}
		for _, e := range list {
			if seen[e.Name()] == 0 {
				names = append(names, e.Name())
			}
			seen[e.Name()] |= 1 << i
		}
	}
	slices.Sort(names)
	for _, n := range names {
		x, y := join(a, n), join(b, n)
		switch seen[n] {
		case 1:
			d.c.print("Only in ", a, ": ", n, "\n")
			d.code = max(d.code, 1)
		case 2:
			d.c.print("Only in ", b, ": ", n, "\n")
			d.code = max(d.code, 1)
		default:
			fx, fy := d.stat(x), d.stat(y)
			switch {
			case fx == nil || fy == nil:
			case fx.IsDir() && fy.IsDir():
				if d.o.has('r') {
					d.dirs(x, y)
				} else {
					d.c.print("Common subdirectories: ", x, " and ", y, "\n")
				}
			default:
				d.files(x, y)
			}
		}
	}
}

func (d *differ) normal(s string) string {
	if d.o.has('w') {
		s = strings.Join(strings.Fields(s), "")
	} else if d.o.has('b') {
		s = strings.Join(strings.Fields(s), " ")
	}
	if d.o.has('i') {
		s = strings.ToLower(s)
	}
	return s
}

func (d *differ) files(a, b string) {
	c := d.c
	var data [2][]byte
	for i, name := range []string{a, b} {
		content, err := c.readAll(name)
		if err != nil {
			c.errorf(plainOpen, name, strerror(err))
			d.code = 2
			return
		}
		data[i] = content
	}
	if bytes.Equal(data[0], data[1]) {
		if d.o.has('s') && !c.samePath(a, b) {
			c.print("Files ", a, " and ", b, " are identical\n")
		}
		return
	}
	if !d.o.has('a') && (bytes.IndexByte(data[0], 0) >= 0 || bytes.IndexByte(data[1], 0) >= 0) || d.o.has('q') {
		c.print("Files ", a, " and ", b, " differ\n")
		d.code = max(d.code, 1)
		return
	}
	x, y := splitLines(string(data[0])), splitLines(string(data[1]))
	edits := diffLines(len(x), len(y), func(i, j int) bool { return x[i] == y[j] || d.normal(x[i]) == d.normal(y[j]) })
	same := true
	for _, e := range edits {
		same = same && e == '='
	}
	if same {
		return
	}
	d.code = max(d.code, 1)
	la, lb := a, b
	if l := d.o.value['L']; len(l) > 0 {
		la = l[0]
		if len(l) > 1 {
			lb = l[1]
		}
	}
	c.print("--- ", la, "\n+++ ", lb, "\n")
	d.unified(edits, x, y)
}

func splitLines(s string) []string {
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// unified prints hunks of an edit script made of '=', '-' and '+'.
func (d *differ) unified(edits []byte, x, y []string) {
	i, j := 0, 0
	for at := 0; at < len(edits); {
		if edits[at] == '=' {
			at++
			i++
			j++
			continue
		}
		lead := min(d.context, i)
		start, end, last := at-lead, at, at
		for end < len(edits) && end-last <= 2*d.context {
			if edits[end] != '=' {
				last = end
			}
			end++
		}
		end = min(len(edits), last+1+d.context)
		fromI, fromJ := i-lead, j-lead
		var text strings.Builder
		ni, nj := fromI, fromJ
		for _, e := range edits[start:end] {
			line := ""
			switch e {
			case '=':
				line = " " + x[ni]
				ni++
				nj++
			case '-':
				line = "-" + x[ni]
				ni++
			case '+':
				line = "+" + y[nj]
				nj++
			}
			text.WriteString(line)
			if !strings.HasSuffix(line, "\n") {
				text.WriteString("\n\\ No newline at end of file\n")
			}
		}
		d.c.print("@@ -", hunk(fromI, ni-fromI), " +", hunk(fromJ, nj-fromJ), " @@\n", text.String())
		i, j, at = ni, nj, end
	}
}

func hunk(from, n int) string {
	if n == 1 {
		return itoa(from + 1)
	}
	if n == 0 {
		return itoa(from) + ",0"
	}
	return itoa(from+1) + "," + itoa(n)
}

// diffLines returns a shortest edit script of two lists, deletions first. The
// table it fills is bounded: bigger lists are taken as wholly different beyond
// what they share at both ends.
func diffLines(n, m int, same func(i, j int) bool) []byte {
	head := 0
	for head < n && head < m && same(head, head) {
		head++
	}
	tail := 0
	for tail < n-head && tail < m-head && same(n-1-tail, m-1-tail) {
		tail++
	}
	a, b := n-head-tail, m-head-tail
	out := bytes.Repeat([]byte("="), head)
	if a > 0 && b > 0 && a*b <= 4_000_000 {
		longest := make([]int32, (a+1)*(b+1))
		for i := a - 1; i >= 0; i-- {
			for j := b - 1; j >= 0; j-- {
				switch at := i*(b+1) + j; {
				case same(head+i, head+j):
					longest[at] = longest[at+b+2] + 1
				default:
					longest[at] = max(longest[at+b+1], longest[at+1])
				}
			}
		}
		i, j := 0, 0
		for i < a || j < b {
			switch {
			case i < a && j < b && same(head+i, head+j):
				out = append(out, '=')
				i++
				j++
			case i < a && (j == b || longest[(i+1)*(b+1)+j] >= longest[i*(b+1)+j+1]):
				out = append(out, '-')
				i++
			default:
				out = append(out, '+')
				j++
			}
		}
	} else {
		out = append(out, bytes.Repeat([]byte("-"), a)...)
		out = append(out, bytes.Repeat([]byte("+"), b)...)
	}
	return append(out, bytes.Repeat([]byte("="), tail)...)
}
