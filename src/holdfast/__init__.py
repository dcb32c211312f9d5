"""Holdfast: publish/subscribe for events that must not be lost, repeated or reordered."""

__version__ = "0.1.0"
