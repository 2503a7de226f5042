package applets

import (
	"errors"
	"io"
	"os"
	"strings"

	"github.com/drydock-sim/drydock/fakecri/internal/busybox/applet"
	"github.com/drydock-sim/drydock/fakecri/kernel"
	"github.com/drydock-sim/drydock/ground/linux"
)

// Dd is dd. Records are counted as the real one counts them: a short read is a
// partial block, iflag=fullblock fills blocks up. conv=swab, fsync and direct
// are read and do nothing; noerror has nothing to do, as reading never fails
// half-way; ascii, ucase and the like are an invalid argument. Bytes, seconds
// and speed, which other builds print as a third line, are left out.
//
// What dd takes is what tests of memory and disks are about, so it is modelled:
// the buffers are charged to the cgroup, zeros from /dev/zero travel as a count
// without being made, and time passes at about 2 GB/s.
func Dd() applet.Applet {
	return applet.New(runDd, "dd", "[if=FILE] [of=FILE] [bs=N | ibs=N obs=N] [count=N] [skip=N] [seek=N] [conv=LIST] [iflag=LIST] [oflag=LIST] [status=none|noxfer]")
}

// ddRun is one run of dd. Sizes are in bytes, counts in blocks.
// A negative count is no limit. The last four are the totals: records read and written,
// whole and partial.
type ddRun struct {
	c                               *applet.Call
	ifName, ofName                  string
	ibs, obs                        int64
	count, skip, seek               int64
	notrunc, sync                   bool
	fullblock, appending            bool
	skipBytes, countBytes, seekByte bool
	quiet                           bool

	inFull, inPart, outFull, outPart int64
}

func runDd(c *applet.Call) int {
	d := &ddRun{c: c, ibs: 512, obs: 512, count: -1}
	// dd has operands and no options, so getopt is not asked; a -- is passed over.
	for _, a := range c.Args {
		if a == "--" {
			continue
		}
		key, value, ok := strings.Cut(a, "=")
		if !ok || !d.operand(key, value) {
			c.Usage()
		}
	}
	code := d.run()
	// The totals follow an error, too: they say how far the copy came.
	if !d.quiet {
		c.Stderr(ratio(d.inFull, d.inPart) + " records in\n" + ratio(d.outFull, d.outPart) + " records out\n")
	}
	return code
}

// ratio is how counts of records are shown: full ones, and partial ones.
func ratio(full, part int64) string { return applet.I64(full) + "+" + applet.I64(part) }

// operand reads KEY=VALUE; false means that dd has no such key.
func (d *ddRun) operand(key, value string) bool {
	size := func() int64 { return d.c.Sized(value, applet.SizeSuffixes()) }
	switch key {
	case "if":
		d.ifName = value
	case "of":
		d.ofName = value
	case "bs", "ibs", "obs":
		n := size()
		if n < 1 || n > 1<<40 {
			d.c.Die("number %s is not in 1..1099511627776 range", value)
		}
		// bs= sets both sizes.
		if key != "obs" {
			d.ibs = n
		}
		if key != "ibs" {
			d.obs = n
		}
	case "count":
		d.count = size()
	case "skip":
		d.skip = size()
	case "seek":
		d.seek = size()
	case "conv", "iflag", "oflag":
		for _, f := range strings.Split(value, ",") {
			if !d.flag(f) {
				d.c.Die("invalid argument '%s' to '%s'", f, key)
			}
		}
	case "status":
		switch value {
		case "none":
			d.quiet = true
		// There is no third line that noxfer could leave out.
		case "noxfer":
		default:
			d.c.Die("invalid argument '%s' to 'status'", value)
		}
	default:
		return false
	}
	return true
}

// flag reads one word of conv=, iflag= or oflag=, which are not told apart.
func (d *ddRun) flag(f string) bool {
	switch f {
	case "notrunc":
		d.notrunc = true
	// There are no bad blocks to go on after.
	case "noerror":
	case "sync":
		d.sync = true
	// No disk is behind the files, so there is nothing to wait for or to bypass.
	case "fsync", "swab", "direct":
	case "fullblock":
		d.fullblock = true
	case "append":
		d.appending = true
	case "skip_bytes":
		d.skipBytes = true
	case "count_bytes":
		d.countBytes = true
	case "seek_bytes":
		d.seekByte = true
	default:
		return false
	}
	return true
}

// run copies. The buffers count as the process's memory, as they do for the real
// one: a block that is bigger than the cgroup's limit is death.
func (d *ddRun) run() int {
	c := d.c
	// One buffer does for both sides if the sizes are equal, as in the real
	// one.
	memory := d.ibs
	if d.obs != d.ibs {
		memory += d.obs
	}
	in, inName, ok := d.openIn()
	if !ok {
		return 1
	}
	out, outName, ok := d.openOut()
	if !ok || !d.position(in, out, inName, outName) {
		return 1
	}
	// Zeros travel as a count only if both ends allow it: a source that has nothing else,
	// and a target that can keep holes.
	zeros := kernel.ReadsZeros(in)
	sink, sparse := out.(kernel.ZeroWriter)
	if err := c.P.Alloc(c.Ctx, memory); err != nil {
		c.Die("%s", applet.Strerror(err))
	}
	limit := d.count
	// A count of blocks becomes one of bytes, unless that would overflow: then
	// there is no end.
	if !d.countBytes && limit >= 0 {
		if limit > (1<<62)/d.ibs {
			limit = 1 << 62
		} else {
			limit *= d.ibs
		}
	}
	var buf []byte
	for limit != 0 {
		want := d.ibs
		if limit > 0 {
			want = min(want, limit)
		}
		var n int64
		var err error
		// Zeros into something that keeps holes: nothing is made or copied.
		if zeros && sparse {
			n = want
		} else {
			if buf == nil {
				// dd is charged for a whole block, but what is made here is 1 MiB at
				// most; bigger blocks pass through in pieces.
				buf = make([]byte, min(d.ibs, 1<<20))
			}
			n, err = d.block(in, out, outName, buf, want)
		}
		if n > 0 {
			d.tally(n, &d.inFull, &d.inPart, d.ibs)
		}
		if n > 0 && zeros && sparse {
			if werr := sink.WriteZeros(c.Ctx, n); werr != nil {
				c.Errorf("error writing '%s': %s", outName, applet.Strerror(werr))
				return 1
			}
			d.tally(n, &d.outFull, &d.outPart, d.obs)
			// A MiB of work takes 1 ms at first, so half of it makes about 2 GB/s.
			c.Spend(n / 2)
		}
		// The write that failed has its message already.
		if errors.Is(err, errReported) {
			return 1
		}
		if err != nil && err != io.EOF {
			c.Errorf("error reading '%s': %s", inName, applet.Strerror(err))
			return 1
		}
		if err == io.EOF || n == 0 {
			return 0
		}
		if limit > 0 {
			if d.countBytes {
				limit -= n
			} else {
				// A partial block uses up one of count's blocks, too.
				limit -= want
			}
		}
	}
	return 0
}

// errReported ends a copy whose error was reported where it happened.
var errReported = errors.New("reported")

// block copies one input block, in pieces that fit the buffer.
func (d *ddRun) block(in, out kernel.File, outName string, buf []byte, want int64) (int64, error) {
	c := d.c
	total := int64(0)
	for total < want {
		piece := buf[:min(int64(len(buf)), want-total)]
		n, err := c.Stream(in).Read(piece)
		total += int64(n)
		if n > 0 {
			data := piece[:n]
			if _, werr := c.Stream(out).Write(data); werr != nil {
				// Input counts as read even if it can't be written.
				d.tally(total, &d.inFull, &d.inPart, d.ibs)
				c.Errorf("error writing '%s': %s", outName, applet.Strerror(werr))
				return 0, errReported
			}
		}
		if err != nil {
			// What came before the end, or the error, has been written, so it counts.
			if total > 0 {
				d.tally(total, &d.outFull, &d.outPart, d.obs)
			}
			return total, err
		}
		// A pipe hands over what it has: without fullblock that is a block, if a partial
		// one.
		if n < len(piece) && !d.fullblock {
			break
		}
	}
	// conv=sync pads a short block with zeros, of which 16 MiB are made at most, and
	// counts it as full.
	if d.sync && total < d.ibs {
		_, _ = c.Stream(out).Write(make([]byte, min(d.ibs-total, 1<<24)))
		d.outFull++
		return total, nil
	}
	d.tally(total, &d.outFull, &d.outPart, d.obs)
	return total, nil
}

// tally counts records of n bytes.
func (d *ddRun) tally(n int64, full, part *int64, size int64) {
	*full += n / size
	if n%size > 0 {
		*part++
	}
}

// openIn returns the source and its name for messages; false means that an error was
// reported.
func (d *ddRun) openIn() (kernel.File, string, bool) {
	if d.ifName == "" {
		return d.c.Stdin().F, "standard input", true
	}
	f, err := d.c.View().Open(d.ifName, os.O_RDONLY, 0)
	if err != nil {
		d.c.Errorf(applet.CantOpen, d.ifName, applet.Strerror(err))
		// Without files there is nothing to count.
		d.quiet = true
		return nil, "", false
	}
	return f, d.ifName, true
}

// openOut returns the target as openIn does the source. Opening truncates only where
// writing begins at the start; position cuts the rest off otherwise.
func (d *ddRun) openOut() (kernel.File, string, bool) {
	if d.ofName == "" {
		f := d.c.P.FD(1)
		if f == nil {
			f = applet.ClosedFile{}
		}
		return f, "standard output", true
	}
	flag := os.O_WRONLY | os.O_CREATE
	if d.seek == 0 && !d.notrunc && !d.appending {
		flag |= os.O_TRUNC
	}
	if d.appending {
		flag |= os.O_APPEND
	}
	f, err := d.c.View().Open(d.ofName, flag, 0o666)
	if err != nil {
		d.c.Errorf(applet.CantOpen, d.ofName, applet.Strerror(err))
		d.quiet = true
		return nil, "", false
	}
	return f, d.ofName, true
}

// position skips and seeks.
// It returns false if it has reported an error. Both counts are in blocks of their own
// side, unless a flag makes them bytes.
func (d *ddRun) position(in, out kernel.File, inName, outName string) bool {
	c := d.c
	if d.skip > 0 {
		n := d.skip
		if !d.skipBytes {
			n *= d.ibs
		}
		// A pipe is skipped by reading it.
		if s, ok := in.(kernel.Seeker); ok {
			if _, err := s.Seek(n, io.SeekCurrent); err == nil {
				n = 0
			}
		}
		// Zeros are the same wherever reading begins.
		if n > 0 && !kernel.ReadsZeros(in) {
			if _, err := io.CopyN(io.Discard, c.Stream(in), n); err != nil && err != io.EOF {
				c.Errorf("%s: %s", inName, applet.Strerror(err))
				return false
			}
		}
	}
	if d.seek > 0 {
		n := d.seek
		if !d.seekByte {
			n *= d.obs
		}
		// What is beyond the place that writing begins at goes, and what is
		// before it may be a hole.
		if t, ok := out.(kernel.Truncater); ok && !d.notrunc {
			if err := t.Truncate(n); err != nil && !errors.Is(err, linux.EINVAL) { // a device is not cut short
				c.Errorf("%s: %s", outName, applet.Strerror(err))
				return false
			}
		}
		s, ok := out.(kernel.Seeker)
		// What can't seek, such as a pipe, is refused as lseek(2) refuses it.
		err := error(linux.ESPIPE)
		if ok {
			_, err = s.Seek(n, io.SeekCurrent)
		}
		if err != nil {
			c.Errorf("%s: %s", outName, applet.Strerror(err))
			return false
		}
	}
	return true
}
