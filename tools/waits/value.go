package main

import (
	"go/ast"
	"go/token"
	"strconv"
	"time"
)

// units are the durations of package time.
var units = map[string]time.Duration{
	"time.Nanosecond": time.Nanosecond, "time.Microsecond": time.Microsecond, "time.Millisecond": time.Millisecond,
	"time.Second": time.Second, "time.Minute": time.Minute, "time.Hour": time.Hour,
}

// maxDepth bounds how many names lead to a value, since names of several functions may form a circle.
const maxDepth = 10

// value returns the value of an expression of numbers, durations in nanoseconds, and names of the package's tests.
func (t *tests) value(e ast.Expr, depth int) (float64, bool) {
	if depth > maxDepth {
		return 0, false
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		number, err := strconv.ParseFloat(e.Value, 64)
		return number, err == nil
	case *ast.ParenExpr:
		return t.value(e.X, depth)
	case *ast.SelectorExpr:
		unit, ok := units[nameOf(e)]
		return float64(unit), ok
	case *ast.Ident:
		known, ok := t.constants[e.Name]
		if !ok {
			return 0, false
		}
		return t.value(known, depth+1)
	case *ast.CallExpr:
		if nameOf(e.Fun) == "time.Duration" && len(e.Args) == 1 {
			return t.value(e.Args[0], depth)
		}
	case *ast.BinaryExpr:
		x, known := t.value(e.X, depth)
		y, alsoKnown := t.value(e.Y, depth)
		switch {
		case known && alsoKnown:
			return computed(e.Op, x, y)
		case e.Op == token.ADD: // an unknown duration makes the sum no shorter
			return x + y, known || alsoKnown
		}
	}
	return 0, false
}

func computed(op token.Token, x, y float64) (float64, bool) {
	switch {
	case op == token.ADD:
		return x + y, true
	case op == token.SUB:
		return x - y, true
	case op == token.MUL:
		return x * y, true
	case op == token.QUO && y != 0:
		return x / y, true
	}
	return 0, false
}
