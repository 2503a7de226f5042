package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/binary"
	"fmt"
	"math/big"
	"strconv"
)

// PodKey is the private key of a type that the API allows for pods (ECDSAP256) that a seed and
// a name decide. One of RSA takes up to some seconds.
func PodKey(seed uint64, keyType, name string) (crypto.Signer, error) {
	switch keyType {
	case "ED25519":
		return Key(seed, name), nil
	case "ECDSAP256":
		return ECKey(seed, name), nil
	case "ECDSAP384":
		return ecKey(seed, elliptic.P384(), name), nil
	case "ECDSAP521":
		return ecKey(seed, elliptic.P521(), name), nil
	case "RSA3072":
		return rsaKey(seed, 3072, name)
	case "RSA4096":
		return rsaKey(seed, 4096, name)
	}
	return nil, fmt.Errorf("unknown key type %q", keyType)
}

// bytesOf are as many bytes as are wanted.
func bytesOf(n int, seed uint64, parts ...string) []byte {
	var out []byte
	for i := uint64(0); len(out) < n; i++ {
		sum := digest(seed, append(parts, string(binary.BigEndian.AppendUint64(nil, i)))...)
		out = append(out, sum[:]...)
	}
	return out[:n]
}

// ecKey is ECKey for larger curves.
func ecKey(seed uint64, curve elliptic.Curve, name string) *ecdsa.PrivateKey {
	bits := curve.Params().BitSize
	for n := 0; ; n++ {
		raw := bytesOf((bits+7)/8, seed, curve.Params().Name+" key", name, strconv.Itoa(n))
		raw[0] &= byte(0xff >> (-bits & 7)) // of 521 bits one is in the first byte
		if key, err := ecdsa.ParseRawPrivateKey(curve, raw); err == nil {
			return key
		}
	}
}

// rsaKey looks for the first primes after two drawn numbers: crypto/rsa takes no other
// randomness than its own.
func rsaKey(seed uint64, bits int, name string) (*rsa.PrivateKey, error) {
	const exponent = 65537
	one, e := big.NewInt(1), big.NewInt(exponent)
	for n := 0; ; n++ {
		p := prime(bytesOf(bits/16, seed, "rsa p", name, strconv.Itoa(n)), e)
		q := prime(bytesOf(bits/16, seed, "rsa q", name, strconv.Itoa(n)), e)
		modulus := new(big.Int).Mul(p, q)
		if modulus.BitLen() != bits || p.Cmp(q) == 0 {
			continue
		}
		phi := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		key := &rsa.PrivateKey{PublicKey: rsa.PublicKey{N: modulus, E: exponent}, D: new(big.Int).ModInverse(e, phi), Primes: []*big.Int{p, q}}
		key.Precompute()
		if err := key.Validate(); err != nil {
			return nil, fmt.Errorf("RSA key of %d bits: %w", bits, err)
		}
		return key, nil
	}
}

// prime is the first prime from a number on, of which an exponent has an inverse. The number's
// upper two bits are set, so that a product of two has all its bits.
func prime(from []byte, e *big.Int) *big.Int {
	from[0] |= 0xc0
	from[len(from)-1] |= 1
	p, two, one := new(big.Int).SetBytes(from), big.NewInt(2), big.NewInt(1)
	// A composite number that passes is not known.
	for !p.ProbablyPrime(0) || new(big.Int).GCD(nil, nil, new(big.Int).Sub(p, one), e).Cmp(one) != 0 {
		p.Add(p, two)
	}
	return p
}
