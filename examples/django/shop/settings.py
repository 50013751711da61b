import os
from pathlib import Path

SECRET_KEY = os.environ.get("SECRET_KEY", "for development only")
DEBUG = True
ALLOWED_HOSTS = ["127.0.0.1", "localhost", "testserver"]
USE_TZ = True
ROOT_URLCONF = "shop.urls"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = ["django_tasks", "penstock.django", "shop"]

FOLDER = Path(__file__).resolve().parents[1]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ.get("SHOP_FILE", FOLDER / "shop.db"),
    }
}
if "SHOP_POSTGRES" in os.environ:
    DATABASES["default"] = {
        "ENGINE": "django.db.backends.postgresql",
        "HOST": os.environ["SHOP_POSTGRES"],
        "PORT": os.environ.get("SHOP_POSTGRES_PORT", ""),
        "USER": os.environ.get("SHOP_POSTGRES_USER", ""),
        "NAME": os.environ["SHOP_POSTGRES_NAME"],
    }

TASKS = {
    "default": {
        "BACKEND": "penstock.django.backend.PenstockBackend",
        "QUEUES": ["default", "mail"],
        "OPTIONS": {"attempts": 3},
    }
}
