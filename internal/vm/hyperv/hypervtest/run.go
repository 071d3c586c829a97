package hypervtest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// object is an object with properties in a pipeline.
type object map[string]any

// session runs a script on a host.
type session struct {
	host      *Host
	variables map[string][]object
	out       []byte
}

// run runs the statements of a script, and appends their output to s.out.
func (s *session) run(script []statement) error {
	for _, statement := range script {
		out, err := s.pipeline(statement.pipeline)
		if err != nil {
			return err
		}
		if statement.variable != "" {
			s.variables[statement.variable] = out
			continue
		}
		for _, o := range out {
			if text, ok := o["text"].(string); ok {
				s.out = append(s.out, text+"\r\n"...)
			}
		}
	}
	return nil
}

func (s *session) pipeline(pipeline []call) (out []object, err error) {
	for i, c := range pipeline {
		if out, err = s.call(c, out, i > 0); err != nil {
			return nil, fmt.Errorf("%s : %w", c.name, err)
		}
	}
	return out, nil
}

// call runs one cmdlet. If piped is set, the cmdlet gets the results of the cmdlet before it in the
// pipeline.
func (s *session) call(c call, in []object, piped bool) ([]object, error) {
	values := map[string]any{}
	for name, value := range c.params {
		evaluated, err := s.evaluate(value)
		if err != nil {
			return nil, err
		}
		values[name] = evaluated
	}
	s.host.Calls = append(s.host.Calls, c.name)
	if fault, ok := s.host.Faults[c.name]; ok {
		return nil, fmt.Errorf("%s", fault)
	}
	switch c.name {
	case "ConvertTo-Json":
		text, err := json.Marshal(values["InputObject"])
		return []object{{"text": string(text)}}, err
	case "Select-Object":
		return selected(in, c.params["Property"].([]property))
	case "Write-Output":
		return values["InputObject"].([]object), nil
	}
	known, ok := cmdlets()[c.name]
	if !ok {
		return nil, fmt.Errorf("the term is not recognized as the name of a cmdlet")
	}
	for name := range values {
		if !slices.Contains(strings.Fields(known.params), name) || s.host.lacks(c.name, name) {
			return nil, fmt.Errorf("a parameter cannot be found that matches parameter name '%s'", name)
		}
	}
	if piped {
		return nil, fmt.Errorf("the stand-in does not pipe objects to it")
	}
	return known.run(s.host, arguments(values))
}

// evaluate returns the value of a parameter.
func (s *session) evaluate(value any) (any, error) {
	switch v := value.(type) {
	case variable:
		kept, ok := s.variables[string(v)]
		if !ok {
			return nil, fmt.Errorf("the variable $%s was not set", v)
		}
		return kept, nil
	case result:
		return s.pipeline(v)
	case list:
		out, err := s.pipeline(v)
		if out == nil {
			out = []object{} // so that ConvertTo-Json writes []
		}
		return out, err
	case table:
		all := map[string]any{}
		for name, one := range v {
			evaluated, err := s.evaluate(one)
			if err != nil {
				return nil, err
			}
			all[name] = evaluated
		}
		return all, nil
	}
	return value, nil
}

// selected returns a copy of each object with only the computed properties.
func selected(in []object, properties []property) (out []object, err error) {
	for _, o := range in {
		kept := object{}
		for _, p := range properties {
			value, ok := o[p.name]
			if !ok {
				return nil, fmt.Errorf("the stand-in's object has no property %s", p.name)
			}
			if kept[p.name], err = computed(p, value); err != nil {
				return nil, err
			}
		}
		out = append(out, kept)
	}
	return out, nil
}

// computed evaluates the expression of a property.
func computed(p property, value any) (any, error) {
	switch p.expression {
	case "$_." + p.name:
		return value, nil
	case "[string]$_." + p.name:
		return fmt.Sprint(value), nil
	case "$_." + p.name + ".TotalSeconds":
		return value.(time.Duration).Seconds(), nil
	case "$_." + p.name + ".ToUniversalTime().ToString('o')":
		return value.(time.Time).UTC().Format("2006-01-02T15:04:05.0000000Z"), nil
	case "@($_." + p.name + ")", "@($_." + p.name + ".Keys)":
		return listed(value), nil
	case "[System.Convert]::ToBase64String($_." + p.name + ")":
		return base64.StdEncoding.EncodeToString(value.([]byte)), nil
	}
	return nil, fmt.Errorf("the stand-in does not know the expression %s", p.expression)
}

// listed returns a list as Windows PowerShell 5.1 makes JSON of a list that Select-Object computes: the pipeline unrolls
// a list of one element (PowerShell/PowerShell#3222), and a longer one has the property Count of its wrapper
// (PowerShell/PowerShell#3163).
func listed(value any) any {
	all, _ := value.([]string)
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	return map[string]any{"value": all, "Count": len(all)}
}

// arguments are the evaluated parameters of a call.
type arguments map[string]any

func (a arguments) text(name string) string { text, _ := a[name].(string); return text }

func (a arguments) number(name string) int64 { n, _ := a[name].(int64); return n }

func (a arguments) is(name string) bool { is, _ := a[name].(bool); return is }

// object returns the only object of a parameter.
func (a arguments) object(name string) (object, error) {
	all, _ := a[name].([]object)
	if len(all) != 1 {
		return nil, fmt.Errorf("cannot bind -%s: it is %d objects", name, len(all))
	}
	return all[0], nil
}
