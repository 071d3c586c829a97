package libvirt

import (
	"bufio"
	"bytes"
	"fmt"
	"image"
	"image/png"
	"io"
)

// maxSide bounds the width and the height of a screen in pixels.
const maxSide = 1 << 13

// toPNG returns a screenshot as PNG. libvirt sends PNG; an older libvirt sends PPM.
func toPNG(picture []byte) ([]byte, error) {
	if size, err := png.DecodeConfig(bytes.NewReader(picture)); err == nil {
		if size.Width > maxSide || size.Height > maxSide {
			return nil, fmt.Errorf("libvirt sent a picture of %d by %d pixels", size.Width, size.Height)
		}
		if _, err := png.Decode(bytes.NewReader(picture)); err != nil {
			return nil, fmt.Errorf("libvirt sent a part of a picture: %w", err)
		}
		return picture, nil
	}
	screen, err := parsePPM(picture)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := png.Encode(&out, screen); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// parsePPM reads a binary PPM with 8 bits a colour: P6, width, height, 255, and the pixels.
func parsePPM(picture []byte) (*image.NRGBA, error) {
	r := bufio.NewReader(bytes.NewReader(picture))
	var width, height, most int
	if n, err := fmt.Fscanf(r, "P6\n%d %d\n%d", &width, &height, &most); err != nil || n != 3 {
		return nil, errNoPicture
	}
	if space, err := r.ReadByte(); err != nil || space != '\n' || most != 255 {
		return nil, errNoPicture
	}
	if width < 1 || height < 1 || width > maxSide || height > maxSide || width*height*3 > len(picture) {
		return nil, fmt.Errorf("libvirt sent a picture of %d by %d pixels in %d bytes", width, height, len(picture))
	}
	screen := image.NewNRGBA(image.Rect(0, 0, width, height))
	row := make([]byte, 3*width)
	for y := range height {
		if _, err := io.ReadFull(r, row); err != nil {
			return nil, fmt.Errorf("libvirt sent %d of %d lines of the screen", y, height)
		}
		for x := range width {
			pixel := screen.Pix[screen.PixOffset(x, y):]
			copy(pixel, row[3*x:3*x+3])
			pixel[3] = 0xff
		}
	}
	return screen, nil
}
