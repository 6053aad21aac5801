package handlers

import (
	"crypto/subtle"

	"github.com/labstack/echo/v4"

	"weir/models"
)

// scrape answers /metrics to who has the token of the scrapers. Without such a token, there
// are no metrics.
func (a *App) scrape(c echo.Context) error {
	if a.MetricsToken == "" {
		return &models.Error{Kind: models.KindNotFound,
			Message: models.Say("There are no metrics: set metrics-token-file (WEIR_METRICS_TOKEN_FILE) to a file with the token of the scraper.")}
	}
	given := bearer(c.Request().Header.Get(echo.HeaderAuthorization))
	if subtle.ConstantTimeCompare([]byte(given), []byte(a.MetricsToken)) != 1 {
		c.Response().Header().Set(echo.HeaderWWWAuthenticate, "Bearer")
		return &models.Error{Kind: models.KindUnauthenticated, Message: models.Say("Send the token of metrics-token-file to read metrics.")}
	}
	a.metrics.Handler().ServeHTTP(c.Response(), c.Request())
	return nil
}
