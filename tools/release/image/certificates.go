package image

import (
	"bytes"
	"encoding/pem"

	"golang.org/x/crypto/x509roots/fallback/bundle"

	"github.com/swdt-dev/swdt/tools/release/payload"
)

// certificates returns Mozilla's root certificates, without which swdt could download nothing with https. A
// root that Mozilla trusts only under a condition is left out, since a file cannot state the condition.
// The licence of the bundle is that of golang.org/x/crypto, which THIRD_PARTY_NOTICES has.
func certificates() (payload.File, error) {
	var b bytes.Buffer
	for root := range bundle.Roots() {
		if root.Constraint != nil {
			continue
		}
		if err := pem.Encode(&b, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return payload.File{}, err
		}
	}
	return payload.File{Name: "etc/ssl/certs/ca-certificates.crt", Mode: payload.ModeText, Content: b.Bytes()}, nil
}
