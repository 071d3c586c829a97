package libvirt

import (
	"bytes"
	"context"
	"errors"
	"image/png"
	"testing"
	"testing/synctest"

	"github.com/digitalocean/go-libvirt"
)

const whole = "P6\n1 1\n255\n\x01\x02\x03"

// A display that shows nothing yet is waited for. Other failures are final.
func TestFirstPicture(t *testing.T) {
	streamEnd := errors.New("the end has no type")
	gone := libvirt.Error{Code: uint32(libvirt.ErrNoDomain)}
	for name, test := range map[string]struct {
		sent  []string
		err   error
		takes int
		want  error // nil: a picture
	}{
		"at once":               {[]string{whole}, streamEnd, 1, nil},
		"after two looks":       {[]string{"", "", whole}, streamEnd, 3, nil},
		"no picture":            {[]string{"GIF89a"}, streamEnd, 1, errNoPicture},
		"a part of a picture":   {[]string{whole[:12]}, gone, 1, gone},
		"never":                 {[]string{""}, streamEnd, 1 + int(pictureLimit/lookInterval), context.DeadlineExceeded},
		"a domain that is gone": {[]string{""}, gone, 1, gone},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				takes := 0
				got, err := firstPicture(t.Context(), func() ([]byte, error) {
					sent := test.sent[min(takes, len(test.sent)-1)]
					takes++
					return []byte(sent), test.err
				})
				if !errors.Is(err, test.want) || takes > test.takes {
					t.Errorf("error %v after %d pictures, want %v after %d", err, takes, test.want, test.takes)
				}
				if _, broken := png.Decode(bytes.NewReader(got)); (broken != nil) != (test.want != nil) {
					t.Errorf("a picture of %d bytes: %v", len(got), broken)
				}
			})
		})
	}
}
