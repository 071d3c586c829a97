package hyperv

import (
	"encoding/binary"
	"fmt"
	"image"
	"image/png"
	"io"
)

// writePNG writes pixels of 16 bits, 5 for red, 6 for green, 5 for blue, as PNG.
func writePNG(w io.Writer, pixels []byte, width, height int) error {
	if len(pixels) != 2*width*height {
		return fmt.Errorf("Hyper-V returns %d bytes for %d by %d pixels", len(pixels), width, height)
	}
	screen := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range width * height {
		pixel := binary.LittleEndian.Uint16(pixels[2*i:])
		red, green, blue := byte(pixel>>11), byte(pixel>>5&0x3f), byte(pixel&0x1f)
		copy(screen.Pix[4*i:], []byte{red<<3 | red>>2, green<<2 | green>>4, blue<<3 | blue>>2, 0xff})
	}
	return png.Encode(w, screen)
}
