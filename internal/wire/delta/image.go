package delta

import "encoding/binary"

// section is a part of an executable that is loaded into memory. The bytes of the file from
// `offset` to `offset+size` are loaded at `address`. Zeros follow them, so that the section has
// `span` bytes in memory.
type section struct {
	offset, size  int64
	address, span int64 // address is relative to the image's lowest address
	code          bool  // x86-64 instructions
}

// image is the layout of an executable's parts in memory. The zero value has no addresses; it
// describes a file that is not an x86-64 executable.
type image struct {
	sections          []section // sorted by offset, without overlaps
	span              int64     // greater than every address
	codeLow, codeHigh int64     // the range of addresses with code
}

const (
	maxSections = 256
	// The span of addresses is at most maxSpanPerByte times the size of the file, plus
	// maxSpanBeyond. This also limits the size of a block map. The span includes zeros that are not
	// in the file.
	maxSpanPerByte = 4
	maxSpanBeyond  = 64 << 20
)

// newImage returns the image of sections that are sorted by offset.
func newImage(sections []section) image {
	m := image{sections: sections}
	for _, s := range sections {
		m.span = max(m.span, s.address+s.span)
		if !s.code {
			continue
		}
		if m.codeHigh == 0 {
			m.codeLow = s.address
		}
		m.codeLow, m.codeHigh = min(m.codeLow, s.address), max(m.codeHigh, s.address+s.span)
	}
	return m
}

// valid reports whether an image has the properties that all arithmetic with
// addresses relies on, for a file of fileSize bytes.
func (m image) valid(fileSize int64) bool {
	if len(m.sections) > maxSections || m.span > maxSpanPerByte*fileSize+maxSpanBeyond || m.span > 1<<31-1 {
		return false
	}
	end := int64(0)
	for _, s := range m.sections {
		if s.offset < end || s.size < 0 || s.size > fileSize || s.offset+s.size > fileSize ||
			s.address < 0 || s.span < s.size {
			return false
		}
		end = s.offset + s.size
	}
	return true
}

// at returns the section that contains a position in the file, and the number of bytes from the
// position to the section's end. Between sections, at returns nil and the distance to the next
// section. After the last section, at returns nil and maxSize.
func (m image) at(offset int64) (*section, int64) {
	for i := range m.sections {
		s := &m.sections[i]
		if offset < s.offset {
			return nil, s.offset - offset
		}
		if offset < s.offset+s.size {
			return s, s.offset + s.size - offset
		}
	}
	return nil, maxSize
}

func (m image) append(to []byte) []byte {
	to = binary.AppendUvarint(to, uint64(len(m.sections)))
	for _, s := range m.sections {
		code := uint64(0)
		if s.code {
			code = 1
		}
		for _, v := range [...]uint64{uint64(s.offset), uint64(s.size), uint64(s.address), uint64(s.span), code} {
			to = binary.AppendUvarint(to, v)
		}
	}
	return to
}

// readImage reads an image that image.append has written.
func readImage(d *decoder, fileSize int64) (image, error) {
	count, err := d.number()
	if err != nil {
		return image{}, d.failed(err)
	}
	if count > maxSections {
		return image{}, corrupt("one of its images has %d sections", count)
	}
	sections := make([]section, count)
	for i := range sections {
		var v [5]int64
		for k := range v {
			if v[k], err = d.number(); err != nil {
				return image{}, d.failed(err)
			}
		}
		sections[i] = section{offset: v[0], size: v[1], address: v[2], span: v[3], code: v[4] == 1}
	}
	m := newImage(sections)
	if !m.valid(fileSize) {
		return image{}, corrupt("one of its images does not fit its file")
	}
	return m, nil
}
