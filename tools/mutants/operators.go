package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
)

// swaps are the operators that a mutant replaces by others. Negation covers == and !=.
var swaps = map[token.Token]token.Token{
	token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR,
	token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL, token.REM: token.MUL,
	token.AND: token.OR, token.OR: token.AND, token.XOR: token.AND, token.AND_NOT: token.AND,
	token.SHL: token.SHR, token.SHR: token.SHL,
	token.LAND: token.LOR, token.LOR: token.LAND,
	token.ADD_ASSIGN: token.SUB_ASSIGN, token.SUB_ASSIGN: token.ADD_ASSIGN,
	token.INC: token.DEC, token.DEC: token.INC,
}

const mustBeConstant = "the language demands a constant"

// visit adds the mutants of a node. It reports whether the nodes below may have mutants too.
func (f *finder) visit(n ast.Node, above []ast.Node) bool {
	var parent ast.Node
	if len(above) > 0 {
		parent = above[len(above)-1]
	}
	switch n := n.(type) {
	case *ast.GenDecl:
		return f.declaration(n)
	case *ast.ArrayType:
		if _, counted := n.Len.(*ast.Ellipsis); n.Len != nil && !counted {
			f.cannot(n, mustBeConstant)
		}
		return false
	case ast.Expr:
		return f.expression(n, parent)
	case ast.Stmt:
		f.statement(n, parent)
		f.results(n, above)
	}
	return true
}

func (f *finder) declaration(d *ast.GenDecl) bool {
	if d.Tok == token.CONST {
		for _, s := range d.Specs {
			for _, value := range s.(*ast.ValueSpec).Values {
				f.cannot(value, mustBeConstant)
			}
		}
	}
	return d.Tok == token.VAR
}

func (f *finder) expression(e ast.Expr, parent ast.Node) bool {
	value, typed := f.info.Types[e]
	if !typed || !value.IsValue() {
		return true
	}
	if isCapacity(e, parent) {
		f.cannot(e, "a capacity changes no result")
		return false
	}
	binary, _ := e.(*ast.BinaryExpr)
	boolean := value.Type == types.Typ[types.Bool] || value.Type == types.Typ[types.UntypedBool]
	if boolean && isAtom(e) && (isCondition(e, parent) || binary != nil && value.Value == nil) {
		f.add(e, f.short(e)+" → not", f.negate(e))
	}
	if value.Value != nil {
		f.constant(e, value.Type, parent)
		return false
	}
	if binary == nil {
		return true
	}
	if binary.Op == token.LAND || binary.Op == token.LOR {
		// a || b is not (not a and not b), and the other way round.
		f.add(e, f.swapped(binary), f.negate(binary), f.negate(binary.X), f.negate(binary.Y))
	} else if _, ok := swaps[binary.Op]; ok && !isString(value.Type) {
		f.swap(binary, value.Type)
	}
	return true
}

func (f *finder) negate(e ast.Expr) edit { return f.wrap(e, "((", ") != mutant(%d))") }

func (f *finder) swapped(b *ast.BinaryExpr) string {
	return fmt.Sprintf("%s → %s", f.short(b), swaps[b.Op])
}

// swap replaces the operator by a call of a helper, which has both.
func (f *finder) swap(b *ast.BinaryExpr, result types.Type) {
	helper := helperName(b.Op)
	if f.info.Types[b.X].Value != nil && (b.Op == token.SHL || b.Op == token.SHR) {
		if result = predeclared(result); result == nil {
			f.cannot(b, "the type of the shifted constant has no name here")
			return
		}
		helper += "[" + result.String() + "]"
	}
	call := f.wrap(b, helper+"(%d, ", ")")
	call.inner = true
	at := f.offset(b.OpPos)
	f.add(b, f.swapped(b), call, edit{from: at, to: at + len(b.Op.String()), replace: true, before: ","})
}

// constant adds and subtracts 1. Constants of named types, such as durations and enumerations, stay.
func (f *finder) constant(e ast.Expr, t types.Type, parent ast.Node) {
	if pair, ok := parent.(*ast.KeyValueExpr); ok && pair.Key == e {
		return
	}
	if basic, ok := t.(*types.Basic); !ok || basic.Info()&types.IsInteger == 0 {
		return
	}
	t = predeclared(t)
	if t == nil {
		f.cannot(e, "the constant has no type")
		return
	}
	for _, by := range []string{"+1", "-1"} {
		f.add(e, f.short(e)+" → "+f.short(e)+by, f.wrap(e, fmt.Sprintf("mutantStep[%s](%%d, %s, ", t, by), ")"))
	}
}

// predeclared returns t if every file can name it, and nil otherwise.
func predeclared(t types.Type) types.Type {
	if basic, ok := t.(*types.Basic); ok && basic.Info()&types.IsUntyped == 0 {
		return t
	}
	return nil
}

func isString(t types.Type) bool {
	basic, ok := t.Underlying().(*types.Basic)
	return ok && basic.Info()&types.IsString != 0
}

// isAtom reports whether a condition has no smaller condition in it.
func isAtom(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return false
	case *ast.UnaryExpr:
		return e.Op != token.NOT
	case *ast.BinaryExpr:
		return e.Op != token.LAND && e.Op != token.LOR
	}
	return true
}

// isCondition reports whether a decision or a result depends on the expression directly.
func isCondition(e ast.Expr, parent ast.Node) bool {
	switch p := parent.(type) {
	case *ast.IfStmt:
		return p.Cond == e
	case *ast.ForStmt:
		return p.Cond == e
	case *ast.UnaryExpr:
		return p.Op == token.NOT
	case *ast.BinaryExpr:
		return p.Op == token.LAND || p.Op == token.LOR
	case *ast.ParenExpr, *ast.ReturnStmt, *ast.CaseClause:
		return true
	}
	return false
}

// isCapacity reports whether an expression is the capacity in a call of make.
func isCapacity(e ast.Expr, parent ast.Node) bool {
	call, ok := parent.(*ast.CallExpr)
	if !ok || len(call.Args) < 2 || types.ExprString(call.Fun) != "make" {
		return false
	}
	_, isMap := call.Args[0].(*ast.MapType)
	return call.Args[len(call.Args)-1] == e && (len(call.Args) == 3 || isMap)
}

// statement drops the effect of a statement.
func (f *finder) statement(s ast.Stmt, parent ast.Node) {
	switch s := s.(type) {
	case *ast.ExprStmt:
		if call, ok := s.X.(*ast.CallExpr); ok && types.ExprString(call.Fun) != "panic" {
			f.drop(s, parent)
		}
	case *ast.DeferStmt:
		f.drop(s, parent)
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE || types.ExprString(s.Lhs[0]) == "_" {
			return
		}
		f.drop(s, parent)
		if other, ok := swaps[s.Tok]; ok && !isString(f.info.Types[s.Lhs[0]].Type) {
			f.replace(s, parent, fmt.Sprintf("%s %s %s", f.text(s.Lhs[0]), other, f.text(s.Rhs[0])))
		}
	case *ast.IncDecStmt:
		f.replace(s, parent, f.text(s.X)+swaps[s.Tok].String())
	case *ast.BranchStmt:
		if s.Tok == token.BREAK || s.Tok == token.CONTINUE {
			f.drop(s, parent)
		}
	case *ast.IfStmt:
		if s.Else == nil && leaves(s.Body) && f.info.Types[s.Cond].Value == nil {
			f.add(s, "if "+f.short(s.Cond)+" → skip its body", f.wrap(s.Cond, "(", ") && !mutant(%d)"))
		}
	}
}

func (f *finder) drop(s ast.Stmt, parent ast.Node) {
	if !inList(parent) {
		f.cannot(s, "part of another statement")
		return
	}
	f.add(s, f.short(s)+" → drop", f.wrap(s, "if !mutant(%d) { ", " }"))
}

func (f *finder) replace(s ast.Stmt, parent ast.Node, by string) {
	if !inList(parent) {
		f.cannot(s, "part of another statement")
		return
	}
	f.add(s, f.short(s)+" → "+by, f.wrap(s, "if mutant(%d) { "+escape(by)+" } else { ", " }"))
}

// inList reports whether a statement of this parent is one of a list of statements.
func inList(parent ast.Node) bool {
	switch parent.(type) {
	case *ast.BlockStmt, *ast.CaseClause, *ast.CommClause:
		return true
	}
	return false
}

// leaves reports whether a block ends with a return, a break or a continue.
func leaves(b *ast.BlockStmt) bool {
	if len(b.List) == 0 {
		return false
	}
	switch b.List[len(b.List)-1].(type) {
	case *ast.ReturnStmt, *ast.BranchStmt:
		return true
	}
	return false
}

// results replaces each error that a statement returns by nil.
func (f *finder) results(s ast.Stmt, above []ast.Node) {
	returned, ok := s.(*ast.ReturnStmt)
	if !ok {
		return
	}
	results := f.signature(above).Results()
	for i, e := range returned.Results {
		isError := types.Identical(results.At(i).Type(), types.Universe.Lookup("error").Type())
		switch {
		case len(returned.Results) < results.Len():
			f.cannot(s, "a call returns several results")
		case isError && !f.info.Types[e].IsNil():
			f.add(s, f.short(s)+" → nil error", f.wrap(e, "mutantNil(%d, ", ")"))
		}
	}
}

// signature returns the type of the innermost function.
func (f *finder) signature(above []ast.Node) *types.Signature {
	for i := len(above) - 1; i >= 0; i-- {
		switch n := above[i].(type) {
		case *ast.FuncLit:
			return f.info.Types[n].Type.(*types.Signature)
		case *ast.FuncDecl:
			return f.info.Defs[n.Name].Type().(*types.Signature)
		}
	}
	panic("a return statement outside of a function")
}
