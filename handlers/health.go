package handlers

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
)

// Paths of the health checks.
const (
	healthPath = "/healthz"
	readyPath  = "/readyz"
)

// ready reports whether the database is reachable.
func (a *App) ready(c echo.Context) error {
	ctx, cancel := context.WithTimeout(c.Request().Context(), 2*time.Second)
	defer cancel()
	if err := a.Store.Ping(ctx); err != nil {
		a.Logger.ErrorContext(ctx, "not ready", "err", err)
		return c.String(http.StatusServiceUnavailable, "database: does not answer\n")
	}
	text := "database: ok (" + a.Store.Dialect() + ")\n"
	if err := a.Store.CheckSpace(); err != nil { // still ready: there is what to look at and to stop
		text += "disk: " + publicError(err).Message.String() + "\n"
	}
	return c.String(http.StatusOK, text)
}
