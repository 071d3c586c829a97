package install

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"image"
	"image/draw"
	"image/png"
	"slices"
)

// Screen compares the pictures of a guest's screen. A blinking text cursor does not count as a
// change, since it also blinks on the screen of a guest that hangs.
type Screen struct {
	sign string      // the sign of the last picture that counts as a change
	last *image.RGBA // the last picture; nil before the first picture, or if decode returned nil
	sums [][sha256.Size]byte
}

const (
	// remembered is how many pictures Screen compares with. A blinking cursor makes two pictures.
	remembered = 4
	// cursorSide is the longest side of a cursor, in pixels. Cells of text have 16 to 32 lines.
	cursorSide = 32
	// maxPixels bounds the size of a picture that is compared by pixels. A screen in QEMU's video
	// memory has fewer pixels.
	maxPixels = 8 << 20
)

// Sign returns a text that changes if the screen changes. A picture is no change if it was seen
// recently and differs from the last picture only in a small rectangle.
func (s *Screen) Sign(picture []byte) string {
	sum := sha256.Sum256(picture)
	if len(s.sums) > 0 && sum == s.sums[len(s.sums)-1] {
		return s.sign
	}
	now := decode(picture)
	seen := slices.Index(s.sums, sum)
	if seen < 0 || !small(difference(s.last, now)) {
		s.sign = hex.EncodeToString(sum[:])
	}
	if seen >= 0 {
		s.sums = slices.Delete(s.sums, seen, seen+1)
	}
	s.sums = append(s.sums, sum)
	s.sums, s.last = s.sums[max(0, len(s.sums)-remembered):], now
	return s.sign
}

// decode returns the pixels of a PNG; nil if the picture is no PNG, or too large.
func decode(picture []byte) *image.RGBA {
	config, err := png.DecodeConfig(bytes.NewReader(picture))
	if err != nil || config.Width > maxPixels/max(1, config.Height) {
		return nil
	}
	decoded, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		return nil
	}
	if pixels, ok := decoded.(*image.RGBA); ok {
		return pixels
	}
	pixels := image.NewRGBA(decoded.Bounds())
	draw.Draw(pixels, pixels.Bounds(), decoded, decoded.Bounds().Min, draw.Src)
	return pixels
}

// difference returns the smallest rectangle that has all pixels in which two pictures differ. For
// pictures of different sizes, or if one picture is nil, the rectangle is larger than any cursor.
func difference(a, b *image.RGBA) image.Rectangle {
	if a == nil || b == nil || a.Rect != b.Rect {
		return image.Rect(0, 0, maxPixels, 1)
	}
	var differs image.Rectangle
	width := a.Rect.Dx() * 4 // bytes
	for y := range a.Rect.Dy() {
		rowA, rowB := a.Pix[y*a.Stride:][:width], b.Pix[y*b.Stride:][:width]
		if bytes.Equal(rowA, rowB) {
			continue
		}
		first, last := 0, width-1
		for rowA[first] == rowB[first] {
			first++
		}
		for rowA[last] == rowB[last] {
			last--
		}
		differs = differs.Union(image.Rect(first/4, y, last/4+1, y+1))
	}
	return differs
}

func small(r image.Rectangle) bool { return max(r.Dx(), r.Dy()) <= cursorSide }
