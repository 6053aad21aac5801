package handlers

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"
)

func path(parts ...any) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteByte('/')
		switch v := p.(type) {
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
		case string:
			b.WriteString(v)
		}
	}
	return b.String()
}

// number reads a numeric part of the path; anything else is not there.
func number(c echo.Context, name string) int64 {
	n, err := strconv.ParseInt(c.Param(name), 10, 64)
	if err != nil || n < 1 {
		return -1
	}
	return n
}

// optionalNumber is number, or 0 where the route has no such part.
func optionalNumber(c echo.Context, name string) int64 {
	if !slices.Contains(c.ParamNames(), name) {
		return 0
	}
	return number(c, name)
}

// portalURL is the address under which a request has reached the portal.
func (a *App) portalURL(r *http.Request) string {
	if a.Secure {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
