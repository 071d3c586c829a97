package winsetup

import (
	"encoding/xml"
	"io/fs"
	"path"
	"strings"
)

// namespace is the XML namespace of answer files.
const namespace = "urn:schemas-microsoft-com:unattend"

// element is any element of an answer file. A nil element has no text and no children.
type element struct {
	XMLName    xml.Name
	Attributes []xml.Attr `xml:",any,attr"`
	Children   []*element `xml:",any"`
	Content    string     `xml:",chardata"`
}

// at returns the element at a path of names, or nil.
func (e *element) at(names ...string) *element {
	for _, name := range names {
		all := e.all(name)
		if len(all) == 0 {
			return nil
		}
		e = all[0]
	}
	return e
}

// all returns the children with a name.
func (e *element) all(name string) (found []*element) {
	if e == nil {
		return nil
	}
	for _, child := range e.Children {
		if child.XMLName.Local == name && child.XMLName.Space == namespace {
			found = append(found, child)
		}
	}
	return found
}

// text returns the text of a child, or "" if the child is missing.
func (e *element) text(name string) string {
	if child := e.at(name); child != nil {
		return strings.TrimSpace(child.Content)
	}
	return ""
}

func (e *element) attribute(name string) string {
	for _, a := range e.Attributes {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// answers is an answer file.
type answers struct{ root *element }

func readAnswers(fsys fs.FS, name string) (answers, error) {
	data, err := read(fsys, name)
	if err != nil {
		return answers{}, err
	}
	root := &element{}
	if err := xml.Unmarshal(data, root); err != nil {
		return answers{}, invalid("windowsPE", "%s: %v", name, err)
	}
	if root.XMLName.Space != namespace || root.XMLName.Local != "unattend" {
		return answers{}, invalid("windowsPE", "%s: its root is %v", name, root.XMLName)
	}
	return answers{root}, nil
}

// component returns the settings of a component in a pass. Windows ignores components of other
// processors.
func (a answers) component(pass, name string) *element {
	for _, settings := range a.root.all("settings") {
		if settings.attribute("pass") != pass {
			continue
		}
		for _, component := range settings.all("component") {
			if component.attribute("name") == name && component.attribute("processorArchitecture") == "amd64" &&
				component.attribute("publicKeyToken") == "31bf3856ad364e35" {
				return component
			}
		}
	}
	return nil
}

// setup returns an element of the settings of Windows Setup itself.
func (a answers) setup(names ...string) *element {
	return a.component("windowsPE", "Microsoft-Windows-Setup").at(names...)
}

// drivers returns the names, in lower case, of all .inf files in the folders that the answers name.
// Windows ignores folders that do not exist. If the answers name folders, but none has a driver,
// drivers returns an error, since swdt never writes such answers.
func (m Machine) drivers(a answers) (map[string]bool, error) {
	found := map[string]bool{}
	paths := a.component("windowsPE", "Microsoft-Windows-PnpCustomizationsWinPE").at("DriverPaths").
		all("PathAndCredentials")
	for _, one := range paths {
		letter, folder, _ := strings.Cut(one.text("Path"), `:\`)
		for _, drive := range m.Drives {
			if !strings.EqualFold(drive.Letter, letter) {
				continue
			}
			root, ok := find(drive.FS, strings.ReplaceAll(folder, `\`, "/"))
			if !ok {
				continue
			}
			err := fs.WalkDir(drive.FS, root, func(name string, _ fs.DirEntry, err error) error {
				if strings.EqualFold(path.Ext(name), ".inf") {
					found[strings.ToLower(path.Base(name))] = true
				}
				return err
			})
			if err != nil {
				return nil, err
			}
		}
	}
	if len(paths) > 0 && len(found) == 0 {
		return nil, invalid("windowsPE", "no drive has a driver in a folder of DriverPaths")
	}
	return found, nil
}
