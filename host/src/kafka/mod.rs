//! Apache Kafka behind the seam of `model::log`. The only room that names rdkafka.
