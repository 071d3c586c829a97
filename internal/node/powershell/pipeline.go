package powershell

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Script is a program of statements without any logic. Its callers never write PowerShell: they
// name cmdlets and pass values. Text quotes each String.
type Script []Statement

// Statement runs a pipeline and, unless Variable is empty, keeps its output in a variable.
type Statement struct {
	Variable string
	Pipeline Pipeline
}

// Pipeline is a chain of cmdlets, each of which reads the output of the one before.
type Pipeline []Cmdlet

// Cmdlet is one call with named parameters, such as Hyper-V\Get-VM -Id '…'.
type Cmdlet struct {
	Name   string // the cmdlet's name, with the module if another module may have the same name
	Params []Param
}

// Param is a parameter. With a nil Value, it is a switch that is set.
type Param struct {
	Name  string
	Value Value
}

// Value is the value of a parameter.
type Value interface{ expression() (string, error) }

type (
	// String is a text.
	String string
	// Number is an integer.
	Number int64
	// Flag is $true or $false.
	Flag bool
	// Off is a switch that is not set, such as -Confirm:$false.
	Off struct{}
	// Variable is the content of a variable.
	Variable string
	// Result is the output of a pipeline.
	Result Pipeline
	// All is the output of a pipeline as a list, also if it has one element or none.
	All Pipeline
	// Table is a hash table.
	Table map[string]Value
	// Typed is a number of a type that a method of CIM requires, such as uint16.
	Typed struct {
		Type   string
		Number int64
	}
	// Bytes is a byte array.
	Bytes []byte
	// Properties are the properties that Select-Object keeps, with their conversions.
	Properties []Property
)

// Property is a property of an object in a result.
type Property struct {
	Name string
	As   Conversion
}

// Conversion makes a property's value independent of PowerShell's version and language. Decode a list as a List.
type Conversion string

const (
	AsIs      Conversion = "$_.%s"
	AsText    Conversion = "[string]$_.%s" // an enumeration's name, a GUID
	AsSeconds Conversion = "$_.%s.TotalSeconds"
	AsTime    Conversion = "$_.%s.ToUniversalTime().ToString('o')" // RFC 3339
	AsList    Conversion = "@($_.%s)"
	AsKeys    Conversion = "@($_.%s.Keys)" // the keys of a dictionary
	AsBase64  Conversion = "[System.Convert]::ToBase64String($_.%s)"
)

// AsJSON returns the statement that prints one JSON object. For each entry of results, the object
// has a list, named like the entry, with the output of the entry's pipeline. Decode it as a List.
func AsJSON(results map[string]Pipeline) Statement {
	table := Table{}
	for name, pipeline := range results {
		table[name] = All(pipeline)
	}
	return Do(Call("ConvertTo-Json", Switch("Compress"), With("Depth", Number(4)), With("InputObject", table)))
}

// Do returns the statement that runs a pipeline.
func Do(pipeline ...Cmdlet) Statement { return Statement{Pipeline: pipeline} }

// Keep returns the statement that keeps the output of a pipeline in a variable.
func Keep(variable string, pipeline ...Cmdlet) Statement { return Statement{variable, pipeline} }

// Call returns a call of a cmdlet.
func Call(name string, params ...Param) Cmdlet { return Cmdlet{name, params} }

// With returns a parameter with a value.
func With(name string, value Value) Param { return Param{name, value} }

// Switch returns a parameter without a value.
func Switch(name string) Param { return Param{Name: name} }

// Select returns the cmdlet that keeps properties of objects.
func Select(properties ...Property) Cmdlet {
	return Call("Select-Object", With("Property", Properties(properties)))
}

// Of returns a property of an object.
func Of(name string, as Conversion) Property { return Property{name, as} }

// Text returns the program, with one statement on each line. It returns an error for a name that is
// not a valid PowerShell name, and for a String with a NUL character.
func (s Script) Text() (string, error) {
	var lines []string
	for _, statement := range s {
		line, err := statement.Pipeline.text()
		if err != nil {
			return "", err
		}
		if statement.Variable != "" {
			name, err := Variable(statement.Variable).expression()
			if err != nil {
				return "", err
			}
			line = name + " = " + line
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n"), nil
}

func (p Pipeline) text() (string, error) {
	var parts []string
	for _, cmdlet := range p {
		part, err := cmdlet.text()
		if err != nil {
			return "", err
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, " | "), nil
}

func (c Cmdlet) text() (string, error) {
	if err := checkName("a cmdlet", `^([A-Za-z][A-Za-z0-9.-]*\\)?[A-Za-z]+-[A-Za-z]+$`, c.Name); err != nil {
		return "", err
	}
	words := []string{c.Name}
	for _, p := range c.Params {
		if err := checkName("a parameter", `^[A-Za-z]+$`, p.Name); err != nil {
			return "", err
		}
		switch p.Value.(type) {
		case nil:
			words = append(words, "-"+p.Name)
			continue
		case Off:
			words = append(words, "-"+p.Name+":$false")
			continue
		}
		value, err := p.Value.expression()
		if err != nil {
			return "", err
		}
		words = append(words, "-"+p.Name, value)
	}
	return strings.Join(words, " "), nil
}

func checkName(what, pattern, name string) error {
	if !regexp.MustCompile(pattern).MatchString(name) {
		return fmt.Errorf("make a PowerShell script: %q is not the name of %s", name, what)
	}
	return nil
}

func (t String) expression() (string, error) {
	if strings.ContainsRune(string(t), 0) {
		return "", fmt.Errorf("make a PowerShell script: %.60q has a NUL character", string(t))
	}
	return Quote(string(t)), nil
}

func (n Number) expression() (string, error) { return strconv.FormatInt(int64(n), 10), nil }
func (f Flag) expression() (string, error)   { return "$" + strconv.FormatBool(bool(f)), nil }
func (Off) expression() (string, error)      { return "$false", nil }

func (v Variable) expression() (string, error) {
	return "$" + string(v), checkName("a variable", `^[A-Za-z][A-Za-z0-9]*$`, string(v))
}

func (r Result) expression() (string, error) {
	text, err := Pipeline(r).text()
	return "(" + text + ")", err
}

func (a All) expression() (string, error) {
	text, err := Pipeline(a).text()
	return "@(" + text + ")", err
}

func (t Table) expression() (string, error) {
	var names []string
	for name := range t {
		names = append(names, name)
	}
	slices.Sort(names)
	var pairs []string
	for _, name := range names {
		value, err := t[name].expression()
		if err == nil {
			err = checkName("a key", `^[A-Za-z]+$`, name)
		}
		if err != nil {
			return "", err
		}
		pairs = append(pairs, name+"="+value)
	}
	return "@{" + strings.Join(pairs, ";") + "}", nil
}

func (t Typed) expression() (string, error) {
	return "[" + t.Type + "]" + strconv.FormatInt(t.Number, 10), checkName("a type", `^u?int(16|32)$`, t.Type)
}

func (b Bytes) expression() (string, error) {
	var numbers []string
	for _, one := range b {
		numbers = append(numbers, strconv.Itoa(int(one)))
	}
	return "[byte[]]@(" + strings.Join(numbers, ",") + ")", nil
}

func (p Properties) expression() (string, error) {
	var all []string
	for _, property := range p {
		if err := checkName("a property", `^[A-Za-z]+$`, property.Name); err != nil {
			return "", err
		}
		all = append(all, fmt.Sprintf("@{Name='%s';Expression={%s}}", property.Name,
			fmt.Sprintf(string(property.As), property.Name)))
	}
	return strings.Join(all, ","), nil
}
