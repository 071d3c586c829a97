package answer

import (
	"bytes"
	"encoding/xml"
)

// pass is a configuration pass of Setup.
type pass string

const (
	windowsPE  pass = "windowsPE"
	generalize pass = "generalize"
	specialize pass = "specialize"
	oobeSystem pass = "oobeSystem"
)

// unattend is the root of an answer file.
type unattend struct {
	XMLName  xml.Name   `xml:"urn:schemas-microsoft-com:unattend unattend"`
	WCM      string     `xml:"xmlns:wcm,attr"`
	Settings []settings `xml:"settings"`
}

type settings struct {
	Pass       pass  `xml:"pass,attr"`
	Components []any `xml:"component"` // structs that embed component
}

// component holds the attributes of all components.
type component struct {
	Name         string `xml:"name,attr"`
	Architecture string `xml:"processorArchitecture,attr"`
	Token        string `xml:"publicKeyToken,attr"`
	Language     string `xml:"language,attr"`
	VersionScope string `xml:"versionScope,attr"`
}

func named(name string) component {
	return component{
		Name:         name,
		Architecture: "amd64",
		Token:        "31bf3856ad364e35",
		Language:     "neutral",
		VersionScope: "nonSxS",
	}
}

// added holds the attribute that each element of a list has.
type added struct {
	Action string `xml:"wcm:action,attr"`
}

func add() added { return added{Action: "add"} }

// keyed holds the attributes of an element of a list whose elements have keys.
type keyed struct {
	added
	Key string `xml:"wcm:keyValue,attr"`
}

func addKeyed(key string) keyed { return keyed{added: add(), Key: key} }

// document marshals an answer file.
func document(passes ...settings) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(xml.Header)
	encoder := xml.NewEncoder(&out)
	encoder.Indent("", "  ")
	err := encoder.Encode(unattend{
		WCM:      "http://schemas.microsoft.com/WMIConfig/2002/State",
		Settings: passes,
	})
	if err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}
