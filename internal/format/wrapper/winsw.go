package wrapper

import (
	"encoding/xml"
	"fmt"
	"strings"
)

// winSW returns what WinSW starts. WinSW may have any name; the XML file of its name beside it makes
// it a wrapper. https://github.com/winsw/winsw/blob/v3/docs/xml-config-file.md
func (l *looking) winSW(program string) (inner string, isWrapper bool, err error) {
	stem, ok := strings.CutSuffix(lower(program), ".exe")
	if !ok || !isAbsolute(program) {
		return "", false, nil
	}
	content, ok := l.machine.ReadFile(program[:len(stem)] + ".xml")
	if !ok {
		return "", false, nil
	}
	var service struct {
		XMLName        xml.Name `xml:"service"`
		Executable     string   `xml:"executable"`
		Arguments      string   `xml:"arguments"`
		Argument       []string `xml:"argument"`
		StartArguments string   `xml:"startarguments"`
	}
	if xml.Unmarshal(content, &service) != nil || service.Executable == "" {
		return "", false, nil // a file of another program
	}
	folder := program[:strings.LastIndexAny(program, `\/`)]
	resolve := func(text string) string {
		return expand(strings.TrimSpace(text), func(name string) (string, bool) {
			if strings.EqualFold(name, "BASE") {
				return folder, true
			}
			return l.variable(name)
		})
	}
	line := resolve(service.Executable)
	if !isAbsolute(line) {
		return "", true, fmt.Errorf("%s.xml names its program without a folder", fileName(program[:len(stem)]))
	}
	line = `"` + line + `"`
	for _, args := range append([]string{service.StartArguments, service.Arguments}, service.Argument...) {
		if args = strings.Join(strings.Fields(resolve(args)), " "); args != "" {
			line += " " + args
		}
	}
	return line, true, nil
}
