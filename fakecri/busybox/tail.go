package busybox

import (
	"bytes"
	"io"
)

// tail writes the last n lines or bytes of r, or with fromStart what is from the
// nth on.
func (c *call) tail(r io.Reader, n int64, inBytes, fromStart bool) error {
	if fromStart {
		n = max(0, n-1)
		if inBytes {
			if _, err := io.CopyN(io.Discard, r, n); err != nil && err != io.EOF {
				return err
			}
			_, err := io.CopyBuffer(struct{ io.Writer }{c.out}, struct{ io.Reader }{r}, make([]byte, 4096))
			return err
		}
		l := c.lines(r, '\n')
		for i := int64(0); i < n; i++ {
			if _, _, ok := l.next(); !ok {
				return l.err
			}
		}
		_, err := io.CopyBuffer(struct{ io.Writer }{c.out}, struct{ io.Reader }{l.r}, make([]byte, 4096))
		return err
	}
	var kept []byte
	zeros := int64(0) // before kept; not stored, since tail /dev/zero is run to fill the memory
	buf := make([]byte, 64<<10)
	full := int64(1 << 20)
	for {
		got, err := r.Read(buf)
		if len(kept) == 0 && allZero(buf[:got]) {
			zeros += int64(got)
		} else {
			kept = append(append(kept, make([]byte, zeros)...), buf[:got]...)
			zeros = 0
		}
		if zeros+int64(len(kept)) > full {
			switch {
			case zeros == 0:
				kept = append([]byte(nil), lastOf(kept, n, inBytes)...)
			case inBytes || n == 0:
				zeros = min(zeros, n)
			}
			c.hold(zeros + int64(len(kept)))
			full = max(1<<20, 2*(zeros+int64(len(kept)))) // a line without end is not looked through again and again
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, _ = c.out.Write(lastOf(append(make([]byte, zeros), kept...), n, inBytes))
	return nil
}

func allZero(b []byte) bool {
	for len(b) > 0 {
		n := min(len(b), len(zeroBlock))
		if !bytes.Equal(b[:n], zeroBlock[:n]) {
			return false
		}
		b = b[n:]
	}
	return true
}

var zeroBlock [4096]byte

// lastOf returns the last n lines or bytes.
func lastOf(data []byte, n int64, inBytes bool) []byte {
	if inBytes {
		return data[max(0, int64(len(data))-n):]
	}
	if n == 0 {
		return nil
	}
	at := len(data)
	if at > 0 && data[at-1] == '\n' {
		at--
	}
	for ; n > 0; n-- {
		if at = bytes.LastIndexByte(data[:at], '\n'); at < 0 {
			return data
		}
	}
	return data[at+1:]
}
