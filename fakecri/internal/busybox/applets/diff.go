package applets

import (
	"bytes"
	"io/fs"
	"slices"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
)

// Diff is diff, always in unified format: BusyBox has no other, whatever POSIX
// says. Labels carry no time stamps. -N, -B, -t, -T, -S, -x and -d are read and
// do nothing: a file that only one directory has is always reported in one line,
// never shown as added.
//
// Status 1 means a difference, 2 trouble.
func Diff() applet.Applet { return applet.New(runDiff, "diff", "[-qsuiwbBaN] [-U LINES] FILE1 FILE2") }

// differ is one run of diff.
// context is how many equal lines surround a change. code is the status so far: it only
// rises, so that trouble outlasts a difference.
type differ struct {
	c       *applet.Call
	o       *applet.Options
	context int
	code    int
}

// Both operands are looked at before either is read, so that both mistakes are told.
func runDiff(c *applet.Call) int {
	o := c.GetoptStatus(2, "abdiL:NqrsS:tTU:uwBx:", "text=a", "brief=q", "unified=U:", "ignore-case=i", "ignore-space-change=b", "ignore-all-space=w", "ignore-blank-lines=B",
		"recursive=r", "new-file=N", "report-identical-files=s", "label=L:", "minimal=d")
	if len(o.Args) != 2 {
		c.Usage()
	}
	d := &differ{c: c, o: o, context: 3}
	if o.Has('U') {
		d.context = int(c.Number(o.Str('U')))
	}
	a, b := o.Args[0], o.Args[1]
	fa, fb := d.stat(a), d.stat(b)
	// Nothing has been compared yet, so this is an operand that is missing.
	if d.code == 2 {
		return 2
	}
	// A file is compared with its namesake in a directory, as POSIX has it.
	if fa != nil && fb != nil && fa.IsDir() != fb.IsDir() {
		if fa.IsDir() {
			a = applet.Join(a, applet.Base(b))
		} else {
			b = applet.Join(b, applet.Base(a))
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

// stat describes an operand; nil for stdin, or with a message and status 2. Links are followed:
// what they lead to is compared.
func (d *differ) stat(name string) fs.FileInfo {
	if name == "-" {
		return nil
	}
	fi, err := d.c.View().Stat(name)
	if err != nil {
		d.c.Errorf("can't stat '%s': %s", name, applet.Strerror(err))
		d.code = 2
		return nil
	}
	return fi
}

// dirs compares two directories by the names in either, sorted. Without -r
// common directories are only named. Names that both have are compared in one order, whatever the
// directories'.
func (d *differ) dirs(a, b string) {
	v := d.c.View()
	// A bit for each of the two directories that has the name.
	seen := map[string]int{}
	var names []string
	for i, dir := range []string{a, b} {
		list, err := v.ReadDir(dir)
		if err != nil {
			d.c.Errorf(applet.CantOpen, dir, applet.Strerror(err))
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
		x, y := applet.Join(a, n), applet.Join(b, n)
		switch seen[n] {
		case 1:
			d.c.Print("Only in ", a, ": ", n, "\n")
			d.code = max(d.code, 1)
		case 2:
			d.c.Print("Only in ", b, ": ", n, "\n")
			d.code = max(d.code, 1)
		default:
			fx, fy := d.stat(x), d.stat(y)
			switch {
			// Reported by stat already, such as a link that leads nowhere.
			case fx == nil || fy == nil:
			case fx.IsDir() && fy.IsDir():
				if d.o.Has('r') {
					d.dirs(x, y)
				} else {
					d.c.Print("Common subdirectories: ", x, " and ", y, "\n")
				}
			default:
				d.files(x, y)
			}
		}
	}
}

// normal is a line as -w, -b and -i compare it. -w takes all white space away, -b makes each run
// of it one space.
func (d *differ) normal(s string) string {
	if d.o.Has('w') {
		s = strings.Join(strings.Fields(s), "")
	} else if d.o.Has('b') {
		s = strings.Join(strings.Fields(s), " ")
	}
	if d.o.Has('i') {
		s = strings.ToLower(s)
	}
	return s
}

// files compares two files. Equal ones are found before anything is split; one
// with a zero byte is binary, unless -a. Both files are held as a whole.
func (d *differ) files(a, b string) {
	c := d.c
	var data [2][]byte
	for i, name := range []string{a, b} {
		content, err := c.ReadAll(name)
		if err != nil {
			c.Errorf(applet.PlainOpen, name, applet.Strerror(err))
			d.code = 2
			return
		}
		data[i] = content
	}
	if bytes.Equal(data[0], data[1]) {
		if d.o.Has('s') && !c.SamePath(a, b) {
			c.Print("Files ", a, " and ", b, " are identical\n")
		}
		return
	}
	if !d.o.Has('a') && (bytes.IndexByte(data[0], 0) >= 0 || bytes.IndexByte(data[1], 0) >= 0) || d.o.Has('q') {
		c.Print("Files ", a, " and ", b, " differ\n")
		d.code = max(d.code, 1)
		return
	}
	x, y := splitLines(string(data[0])), splitLines(string(data[1]))
	// Lines that are equal as they stand need no normal form, which costs an allocation.
	edits := diffLines(len(x), len(y), func(i, j int) bool { return x[i] == y[j] || d.normal(x[i]) == d.normal(y[j]) })
	// Files that differ only in what -b, -i or -w ignore are equal.
	same := true
	for _, e := range edits {
		same = same && e == '='
	}
	if same {
		return
	}
	d.code = max(d.code, 1)
	la, lb := a, b
	// The first -L replaces the first file's name, the second the other's.
	if l := d.o.Value['L']; len(l) > 0 {
		la = l[0]
		if len(l) > 1 {
			lb = l[1]
		}
	}
	c.Print("--- ", la, "\n+++ ", lb, "\n")
	d.unified(edits, x, y)
}

// splitLines keeps the newlines, so that a missing one at the end is seen. An empty file has no
// lines.
func splitLines(s string) []string {
	list := strings.SplitAfter(s, "\n")
	if list[len(list)-1] == "" {
		list = list[:len(list)-1]
	}
	return list
}

// unified prints hunks of an edit script made of '=', '-' and '+'. i and j are the next lines of
// the two files at the script's position.
func (d *differ) unified(edits []byte, x, y []string) {
	i, j := 0, 0
	for at := 0; at < len(edits); {
		if edits[at] == '=' {
			at++
			i++
			j++
			continue
		}
		// Near the beginning of the file there is less context than was asked for.
		lead := min(d.context, i)
		start, end, last := at-lead, at, at
		// Changes that are closer than twice the context share a hunk.
		for end < len(edits) && end-last <= 2*d.context {
			if edits[end] != '=' {
				last = end
			}
			end++
		}
		// The search for the next change has gone too far; only the context stays.
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
			// Only a file's last line can lack its newline.
			if !strings.HasSuffix(line, "\n") {
				text.WriteString("\n\\ No newline at end of file\n")
			}
		}
		d.c.Print("@@ -", hunk(fromI, ni-fromI), " +", hunk(fromJ, nj-fromJ), " @@\n", text.String())
		i, j, at = ni, nj, end
	}
}

// hunk is a range in a hunk's header: a length of 1 is left out, and an empty
// range is named by the line before it. from counts from 0, the header from 1.
func hunk(from, n int) string {
	if n == 1 {
		return applet.Itoa(from + 1)
	}
	if n == 0 {
		return applet.Itoa(from) + ",0"
	}
	return applet.Itoa(from+1) + "," + applet.Itoa(n)
}

// diffLines returns a shortest edit script of two lists, deletions first. The
// table it fills is bounded: bigger lists are taken as wholly different beyond
// what they share at both ends.
// Most pairs share a long beginning and end, which keeps the table small.
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
	// Longest common subsequence: longest[i][j] is that of what is left from i
	// and j on.
	if a > 0 && b > 0 && a*b <= 4_000_000 {
		// Four bytes a cell: about 16 MB at most.
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
			// A tie deletes first, so that all of a change's - lines precede its + lines.
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
