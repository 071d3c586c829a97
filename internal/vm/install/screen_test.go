package install_test

import (
	"bytes"
	"errors"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/swdt-dev/swdt/internal/vm/install"
)

// recorded returns a picture of the screen of QEMU 7.2, whose firmware found nothing to start and
// shows a cursor that blinks.
func recorded(t *testing.T, name string) []byte {
	t.Helper()
	picture, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return picture
}

// with returns a picture with a further rectangle.
func with(t *testing.T, picture []byte, r image.Rectangle) []byte {
	t.Helper()
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	changed := image.NewRGBA(decoded.Bounds())
	draw.Draw(changed, changed.Bounds(), decoded, image.Point{}, draw.Src)
	draw.Draw(changed, r, image.NewUniform(color.RGBA{B: 200, A: 255}), image.Point{}, draw.Src)
	var written bytes.Buffer
	if err := png.Encode(&written, changed); err != nil {
		t.Fatal(err)
	}
	return written.Bytes()
}

func TestOnlyABlinkingCursorIsNoChange(t *testing.T) {
	on, off := recorded(t, "cursor-on.png"), recorded(t, "cursor-off.png")
	digit := func(i int) []byte { return with(t, off, image.Rect(8*i, 200, 8*i+8, 216)) }
	large := with(t, off, image.Rect(0, 200, 400, 216))
	for name, test := range map[string]struct {
		pictures [][]byte
		changes  []bool // since the picture before
	}{
		"a cursor blinks": {[][]byte{on, off, on, on, off, on}, []bool{true, true, false, false, false, false}},
		"a text appears beside a cursor": {
			[][]byte{on, off, on, digit(1), on, off}, []bool{true, true, false, true, true, false},
		},
		"a number counts":      {[][]byte{digit(1), digit(2), digit(3), digit(4)}, []bool{true, true, true, true}},
		"a large part changes": {[][]byte{off, large, off, large}, []bool{true, true, true, true}},
		"no picture":           {[][]byte{[]byte("x"), []byte("y"), []byte("y"), on}, []bool{true, true, false, true}},
	} {
		t.Run(name, func(t *testing.T) {
			var screen install.Screen
			var changes []bool
			before := ""
			for _, picture := range test.pictures {
				now := screen.Sign(picture)
				changes = append(changes, now != before)
				before = now
			}
			if diff := cmp.Diff(test.changes, changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
		})
	}
}

// A guest that waits at a prompt with a cursor is given up like one whose screen is still.
func TestABlinkingCursorDoesNotHideAStall(t *testing.T) {
	on, off := recorded(t, "cursor-on.png"), recorded(t, "cursor-off.png")
	synctest.Test(t, func(t *testing.T) {
		var screen install.Screen
		g := &guest{signs: func(at time.Duration) install.Signs {
			picture := on
			if int(at/time.Second)%2 == 1 {
				picture = off
			}
			return install.Signs{Written: 1 << 20, Screen: screen.Sign(picture)}
		}}
		_, err := watch(t, g, install.Options{})
		var failure *install.Failure
		if !errors.As(err, &failure) || failure.Cause != install.SetupStopped {
			t.Fatalf("got %v", err)
		}
		if at := g.at(); at > 6*time.Minute {
			t.Errorf("it took %s to give up", at)
		}
	})
}

// A picture of any guest is compared without a panic, and the same picture is no change.
func FuzzScreen(f *testing.F) {
	for _, name := range []string{"cursor-on.png", "cursor-off.png"} {
		picture, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(picture, picture[:len(picture)/2])
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		var screen install.Screen
		screen.Sign(a)
		if first, again := screen.Sign(b), screen.Sign(b); first != again {
			t.Errorf("the same picture has the signs %s and %s", first, again)
		}
	})
}
