package platformtest

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/swdt-dev/swdt/internal/platform"
	"github.com/swdt-dev/swdt/internal/wire/fault"
)

func testRoots(t *testing.T, fixture func(*testing.T) Fixture) {
	t.Run("AddedAndRemoved", func(t *testing.T) {
		roots := fixture(t).Platform.Roots
		one, other := Authority(t, "one"), Authority(t, "other")
		before := trusted(t, roots)
		t.Cleanup(func() { _ = roots.Remove(one); _ = roots.Remove(other) })
		for _, certificate := range [][]byte{one, other, one} { // a second time is no error
			if err := roots.Add(certificate); err != nil {
				t.Fatal(err)
			}
		}
		if after := trusted(t, roots); len(after) != len(before)+2 || !has(after, one) || !has(after, other) {
			t.Errorf("%d certificates before, %d after two were added", len(before), len(after))
		}
		if err := roots.Remove(one); err != nil {
			t.Fatal(err)
		}
		if after := trusted(t, roots); len(after) != len(before)+1 || has(after, one) || !has(after, other) {
			t.Errorf("%d certificates before, %d after one was removed again", len(before), len(after))
		}
		if err := roots.Remove(one); !errors.Is(err, fault.ErrNotExist) {
			t.Errorf("removed twice: %v", err)
		}
	})
	t.Run("NoCertificate", func(t *testing.T) {
		roots := fixture(t).Platform.Roots
		for _, certificate := range [][]byte{nil, []byte("no certificate")} {
			if err := roots.Add(certificate); err == nil {
				t.Errorf("%q was added", certificate)
			}
		}
	})
}

func trusted(t *testing.T, roots platform.Roots) [][]byte {
	t.Helper()
	all, err := roots.List()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func has(all [][]byte, certificate []byte) bool {
	return slices.ContainsFunc(all, func(c []byte) bool { return bytes.Equal(c, certificate) })
}

// Authority returns the certificate of a new certification authority, in DER.
func Authority(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "swdt test authority " + name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate
}
