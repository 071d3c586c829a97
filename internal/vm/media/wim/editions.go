package wim

import (
	"bytes"
	"encoding/binary"
	"encoding/xml"
	"io"
	"strings"
	"unicode/utf16"
)

// Image is one edition of Windows in the file. A text that the XML document lacks is "", and a number
// that the document lacks is 0.
type Image struct {
	Index           int    // counts from 1; selects the edition in Windows Setup
	Name            string // such as Windows Server 2022 SERVERSTANDARDCORE
	DisplayName     string // such as Windows Server 2022 Standard Evaluation
	Edition         string // such as ServerStandardEval
	Installation    string // Server Core, Server or Client
	Product         string // such as Microsoft® Windows® Operating System
	ProductType     string // ServerNT or WinNT
	Architecture    string // amd64, arm64, x86, arm, ia64; "" if it is unknown
	Major, Minor    int
	Build           int // such as 20348
	ServicePack     int // the build of the update, such as 587
	Languages       []string
	DefaultLanguage string
	Bytes           int64 // size of all files, once installed
}

// document is the XML document of a file.
type document struct {
	Images []imageElement `xml:"IMAGE"`
}

type imageElement struct {
	Index       int            `xml:"INDEX,attr"`
	Name        string         `xml:"NAME"`
	DisplayName string         `xml:"DISPLAYNAME"`
	Bytes       int64          `xml:"TOTALBYTES"`
	Windows     windowsElement `xml:"WINDOWS"`
}

type windowsElement struct {
	Architecture *int           `xml:"ARCH"`
	Product      string         `xml:"PRODUCTNAME"`
	Edition      string         `xml:"EDITIONID"`
	Installation string         `xml:"INSTALLATIONTYPE"`
	ProductType  string         `xml:"PRODUCTTYPE"`
	Languages    []string       `xml:"LANGUAGES>LANGUAGE"`
	Default      string         `xml:"LANGUAGES>DEFAULT"`
	Version      versionElement `xml:"VERSION"`
}

type versionElement struct {
	Major       int `xml:"MAJOR"`
	Minor       int `xml:"MINOR"`
	Build       int `xml:"BUILD"`
	ServicePack int `xml:"SPBUILD"`
}

// parseImages parses the XML document of a file, which is UTF-16 with a byte order mark. count is
// the number of images that the file's header states.
func parseImages(text []byte, count int) ([]Image, error) {
	const position = 72 // the header refers to the document at this offset
	if len(text) < 2 || text[0] != 0xff || text[1] != 0xfe {
		return nil, broken(position, "the list of editions is not UTF-16 text")
	}
	var parsed document
	decoder := xml.NewDecoder(bytes.NewReader(utf8Of(text[2:])))
	// The document may declare UTF-16, but utf8Of has converted it to UTF-8.
	decoder.CharsetReader = func(_ string, input io.Reader) (io.Reader, error) { return input, nil }
	if err := decoder.Decode(&parsed); err != nil {
		return nil, broken(position, "the list of editions is no XML document: %v", err)
	}
	if count > maxImages {
		return nil, broken(44, "the header states %d editions: swdt reads at most %d", count, maxImages)
	}
	if len(parsed.Images) != count {
		return nil, broken(44, "the header states %d editions, but the list names %d", count, len(parsed.Images))
	}
	images := make([]Image, 0, count)
	taken := map[int]bool{}
	for _, element := range parsed.Images {
		if element.Index < 1 || element.Index > count || taken[element.Index] {
			return nil, broken(position, "in the list of editions, the index %d is repeated or out of range", element.Index)
		}
		taken[element.Index] = true
		images = append(images, element.image())
	}
	return images, nil
}

// utf8Of converts UTF-16 text.
func utf8Of(text []byte) []byte {
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = binary.LittleEndian.Uint16(text[2*i:])
	}
	return []byte(string(utf16.Decode(units)))
}

func (e imageElement) image() Image {
	w := e.Windows
	image := Image{
		Index: e.Index, Name: clean(e.Name), DisplayName: clean(e.DisplayName), Bytes: max(e.Bytes, 0),
		Edition: clean(w.Edition), Installation: clean(w.Installation),
		Product: clean(w.Product), ProductType: clean(w.ProductType),
		Major: w.Version.Major, Minor: w.Version.Minor, Build: w.Version.Build, ServicePack: w.Version.ServicePack,
		DefaultLanguage: clean(w.Default), Languages: []string{},
	}
	for _, language := range w.Languages {
		image.Languages = append(image.Languages, clean(language))
	}
	if w.Architecture != nil {
		image.Architecture = architecture(*w.Architecture)
	}
	return image
}

func clean(text string) string { return strings.TrimSpace(text) }

// architecture returns Go's name of a PROCESSOR_ARCHITECTURE number, or "".
func architecture(number int) string {
	switch number {
	case 0:
		return "x86"
	case 5:
		return "arm"
	case 6:
		return "ia64"
	case 9:
		return "amd64"
	case 12:
		return "arm64"
	}
	return ""
}
