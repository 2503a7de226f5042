package loop

import "time"

// Hash mixes the parts of a key into 64 well-spread bits: FNV-1a over the
// strings (each closed by a byte that UTF-8 never holds), then the SplitMix64
// finaliser over the numbers.
func Hash(seed uint64, parts []string, nums ...uint64) uint64 {
	h := uint64(14695981039346656037) ^ mix(seed+0x9e3779b97f4a7c15)
	for _, p := range parts {
		h = hashString(h, p)
	}
	for _, n := range nums {
		h = mix(h ^ mix(n+0x9e3779b97f4a7c15))
	}
	return mix(h)
}

func hashString(h uint64, s string) uint64 {
	for i := 0; i < len(s); i++ {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return (h ^ 0xff) * 1099511628211
}

func mix(z uint64) uint64 {
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb
	return z ^ (z >> 31)
}

// Uint64 is the n-th draw for a purpose and an object on this loop.
func (l *Loop) Uint64(purpose, object string, n uint64) uint64 {
	h := hashString(hashString(l.drawBase, purpose), object)
	return mix(h ^ mix(n+0x9e3779b97f4a7c15))
}

// Float64 is the n-th draw for a purpose and an object, uniform in [0,1).
func (l *Loop) Float64(purpose, object string, n uint64) float64 {
	return float64(l.Uint64(purpose, object, n)>>11) / (1 << 53)
}

// Between is the n-th draw for a purpose and an object, uniform in [lo,hi];
// lo when hi is not above it. On a typical loop it is the middle.
func (l *Loop) Between(lo, hi time.Duration, purpose, object string, n uint64) time.Duration {
	if hi <= lo {
		return lo
	}
	if l.typical {
		return lo + (hi-lo)/2
	}
	return lo + time.Duration(l.Uint64(purpose, object, n)%uint64(hi-lo+1))
}

// Jitter lengthens d by up to factor×d, as apimachinery's wait.Jitter does
// with a positive factor: a value in [d, d×(1+factor)). On a typical loop it is
// the middle.
func (l *Loop) Jitter(d time.Duration, factor float64, purpose, object string, n uint64) time.Duration {
	if factor <= 0 {
		return d
	}
	if l.typical {
		return d + time.Duration(factor/2*float64(d))
	}
	return d + time.Duration(l.Float64(purpose, object, n)*factor*float64(d))
}
